"""Embedded defaults, each with a card (`.md`) beside it."""
