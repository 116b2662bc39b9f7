"""Fine-tuning of masked models on rewritten text."""
