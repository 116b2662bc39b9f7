"""Gold decisions on pronouns, read from texts that the embedded judge was not trained on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

WORD = re.compile(r"\w+")
HER = re.compile(r"\b(?:her|him|his)\b")


class Gold(NamedTuple):
    """A pronoun at text[start:end] and the right answer."""

    text: str
    start: int
    end: int
    answer: bool


def treebank(path: Path, word: str) -> list[Gold]:
    """Every `word` of a CoNLL-U file; the answer is whether its tag is PRP$."""
    result = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        text = next(line[9:] for line in lines if line.startswith("# text = "))
        index = 0
        for line in lines:
            fields = line.split("\t")
            if not fields[0].isdigit():
                continue
            start = text.index(fields[1], index)
            index = start + len(fields[1])
            if fields[1].lower() == word:
                result.append(Gold(text, start, index, fields[4] == "PRP$"))
    return result


def winobias(folder: Path) -> list[Gold]:
    """Every "her" of WinoBias dev; the line with the genders swapped shows him or his there."""
    result = []
    for kind in ("type1", "type2"):
        pro, anti = (
            (folder / f"{side}_stereotyped_{kind}.txt.dev").read_text().splitlines()
            for side in ("pro", "anti")
        )
        for line, swapped in [*zip(pro, anti, strict=True), *zip(anti, pro, strict=True)]:
            positions, answers = list(HER.finditer(line)), HER.findall(swapped)
            result += [
                Gold(line, *index.span(), answer == "his")
                for index, answer in zip(positions, answers, strict=False)
                if index[0] == "her" and answer != "her"
            ]
    return result


def pairs(path: Path, split: str) -> Iterator[tuple[str, str]]:
    """Source and target of the lines of one split of a gold file of rewriting."""
    header, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    for fields in rows:
        row = dict(zip(header, fields, strict=True))
        if row["split"] == split:
            yield row["source"], row["target"]


def rewritten(path: Path, split: str, word: str, answers: Mapping[str, bool]) -> list[Gold]:
    """Every `word` of the sources whose counterpart in the target gives the answer."""
    result = []
    for source, target in pairs(path, split):
        positions, words = list(WORD.finditer(source)), WORD.findall(target)
        if len(positions) == len(words):
            result += [
                Gold(source, *index.span(), answers[other.lower()])
                for index, other in zip(positions, words, strict=True)
                if index[0].lower() == word and other.lower() in answers
            ]
    return result


def contractions(path: Path, split: str) -> list[Gold]:
    """Every "he's" and "she's" of a neutral rewriting; 're says is (True), 've has."""
    result = []
    for source, target in pairs(path, split):
        positions = list(re.finditer(r"\b(s?he)['’]s\b", source, re.IGNORECASE))
        answers = re.findall(r"\bthey['’](re|ve)\b", target, re.IGNORECASE)
        if len(positions) == len(answers):
            result += [
                Gold(source, *index.span(1), answer.lower() == "re")
                for index, answer in zip(positions, answers, strict=True)
            ]
    return result
