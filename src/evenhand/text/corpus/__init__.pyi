from .formats import Csv, Form, Jsonl, Lines
from .pipeline import CorpusWork, Progress, RewriteWork, restore, stream

__all__ = [
    "CorpusWork",
    "Csv",
    "Form",
    "Jsonl",
    "Lines",
    "Progress",
    "RewriteWork",
    "restore",
    "stream",
]
