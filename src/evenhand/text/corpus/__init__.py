"""Corpora larger than memory: streamed through a function in several processes, order kept."""

from evenhand.text.corpus.pipeline import Progress, stream
from evenhand.text.corpus.records import Form, Jsonl, Lines
from evenhand.text.corpus.restoring import restore
from evenhand.text.corpus.tables import Csv
from evenhand.text.corpus.work import Done, RewriteWork, Work

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
