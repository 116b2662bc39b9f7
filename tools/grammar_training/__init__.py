"""The parts of `tools/train_grammar.py`."""
