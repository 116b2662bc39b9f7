"""Corpora larger than memory: streamed through a function in several processes, in order."""

from evenhand.text.corpus.formats import Csv, Form, Jsonl, Lines
from evenhand.text.corpus.pipeline import Done, Progress, RewriteWork, Work, restore, stream

__all__ = [
    "Csv",
    "Done",
    "Form",
    "Jsonl",
    "Lines",
    "Progress",
    "RewriteWork",
    "Work",
    "restore",
    "stream",
]
