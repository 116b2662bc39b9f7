"""How far the arithmetic of a measure is from the shell, and how few files name a measure."""

from __future__ import annotations

import ast
import io
import keyword
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest

import evenhand
from evenhand.cli import run
from evenhand.instruments import PACKAGES, all_declarations

ROOT = Path(evenhand.__file__).parent
MOST_FILES = 10
MOST_NAMING = 6
"""Files of the package that may name an instrument: its own, the package it is exported from, its
section of the report, its command and a little more."""
NAMELESS = (
    "audit",
    "instruments.py",
    "results.py",
    "report/comparison.py",
    "report/findings.py",
    "report/methods.py",
    "report/page.py",
    "report/verdicts.py",
)
"""What reads declarations and names no instrument."""
OTHER_MEANINGS = {
    "accuracy": {
        "scores/reading.py": "a usual name of a column",
        "language/metrics/coreference.py": "the share of right readings",
    },
    "association": {
        "fewshot/answers.py": "a measure of few-shot bias",
        "fewshot/metrics/bias.py": "a measure of few-shot bias",
        "fewshot/runs.py": "a measure of few-shot bias",
        "report/fewshot.py": "a measure of few-shot bias",
        "masked/behaviours.py": "a column of items: the association of a phrase",
        "masked/metrics/phrases.py": "a column of items: the association of a phrase",
        "report/masked.py": "a column of items: the association of a phrase",
    },
    "odds": {
        "fewshot/data.py": "how a class leans",
        "fewshot/settings.py": "how a class leans",
        "statistics/odds.py": "how a class leans",
        "text/rewrite/stereotype.py": "how a class leans",
    },
    "professions": {
        "lexicon/__init__.py": "the list of professions",
        "masked/designs.py": "the list of professions",
        "statistics/crossed.py": "an axis of a table",
    },
}
"""Files in which an ordinary word that is also the name of an instrument means something else."""


@pytest.mark.parametrize(
    ("command", "file", "function"),
    [
        (
            "vectors measure glove --weat 6 --metric weat --json",
            "statistics/association.py",
            "association",
        ),
        ("masked score - --json", "masked/gender_words.py", "bias"),
    ],
)
def test_the_arithmetic_is_near_the_shell(command, file, function, monkeypatch, capsys):
    """The files between the shell and the formula, as a debugger's call stack shows them."""
    path: list[str] = []

    def profile(frame, event, _):
        if event != "call" or path or frame.f_code.co_name != function:
            return
        stack = []
        while frame is not None:
            name = Path(frame.f_code.co_filename)
            if name.is_relative_to(ROOT):
                stack.append(name.relative_to(ROOT).as_posix())
            frame = frame.f_back
        if stack and stack[0] == file:
            path.extend(dict.fromkeys(reversed(stack)))

    text = b"The clerk lost [MASK] keys.\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        code = run(command.split())
    finally:
        sys.setprofile(before)
    assert code == 0, capsys.readouterr().err
    assert 0 < len(path) <= MOST_FILES, path


@cache
def naming() -> dict[str, set[str]]:
    """The files that name each instrument: by a string equal to its name, or by an import of it."""
    own = {**PACKAGES, "language": ("evenhand.language.metrics",)}
    packages = {about.name: own[about.subject][0] for about in all_declarations()}
    files: dict[str, set[str]] = {name: set() for name in packages}
    for path in ROOT.rglob("*.py"):
        file = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in files:
                files[str(node.value)].add(file)
            elif isinstance(node, ast.ImportFrom):
                for name, package in packages.items():
                    of_package = node.module == package and name in {a.name for a in node.names}
                    if of_package or node.module == f"{package}.{name}":
                        files[name].add(file)
    return files


@pytest.mark.parametrize("name", sorted({about.name for about in all_declarations()}))
def test_a_measure_is_named_in_few_files(name):
    files = naming()[name] - set(OTHER_MEANINGS.get(name, ()))
    assert len(files) <= MOST_NAMING, sorted(files)


def test_exceptions_are_still_needed():
    for name, files in OTHER_MEANINGS.items():
        assert set(files) <= naming()[name], name


def test_what_reads_declarations_names_no_instrument():
    named = {
        (name, file)
        for name, files in naming().items()
        for file in files
        if file.startswith(tuple(f"{part}/" if "." not in part else part for part in NAMELESS))
    }
    assert not named


GONE = {"told", "tosses", "twin", "twins", "lest"}
"""Words that names had and have no more: messages, permutations and counterfactuals have these."""


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "tools"])
def test_names_have_no_word_that_is_gone(folder):
    files = (Path(__file__).parents[1] / folder).rglob("*.py")
    named = [
        (path.name, token.start[0], token.string)
        for path in files
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
        if token.type == tokenize.NAME
        and not keyword.iskeyword(token.string)
        and GONE.intersection(token.string.lower().split("_"))
    ]
    assert named == []


P_VALUES = {"p", "p_value", "p_values", "p_holm", "p_corrected", "p_tested", "null_p"}
ENDS = {"low", "high"}
UNJUDGED = {
    ("charts.py", "inline"): "the ends of an axis",
    ("cli/output.py", "p_text"): "the decimals of a p-value",
    ("fewshot/episodes.py", "draw"): "row numbers",
    ("fewshot/metrics/bias.py", "fold"): "the interval of a size",
    ("gate/checking.py", "fold"): "the interval of a size",
    ("gate/planning.py", "_targets"): "whether an interval has a width",
    ("gate/planning.py", "_independent"): "whether a ratio has a logarithm",
    ("gate/policy.py", "_rule"): "whether a limit was given",
    ("gate/policy.py", "problem"): "limits in the wrong order",
    ("gate/policy.py", "one_sided_problem"): "limits on one side of the ideal",
    ("language/asking.py", "_percent"): "the decimals of a probability",
    ("language/metrics/professions.py", "known"): "positions in a text",
    ("language/metrics/professions.py", "_measure_causal"): "positions in a text",
    ("masked/metrics/disco.py", "_result"): "what the measure counts, by its definition",
    ("masked/words.py", "_pieces"): "positions in a text",
    ("masked/words.py", "_over"): "positions in a text",
    ("report/comparison.py", "_arms"): "whether a value is inside its own interval",
    ("report/text.py", "_ticks"): "the ends of an axis",
    ("text/metrics/odds.py", "_compare_classes"): "whether a ratio has a logarithm",
    ("vectors/debias/inlp.py", "inlp"): "when the rounds of a method end, by its definition",
    ("wording.py", "p_value"): "the decimals of a p-value",
    ("wording.py", "supported"): "the decimals of a p-value",
    ("wording.py", "probability"): "the decimals of a probability",
}
"""The functions outside of the judge that compare what is called so, and with what."""


def test_no_other_module_compares_a_p_value_or_an_interval_with_a_threshold() -> None:
    """`judging.py` decides; `statistics` computes what it decides by."""
    seen = set()
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name == "judging.py" or name.startswith(("statistics/", "simulate/")):
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(map(_compares, ast.walk(function))):
                seen.add((name, function.name))
    assert seen == set(UNJUDGED)


def _compares(node: ast.AST) -> bool:
    """Whether a node asks for the order of a p-value, or of the end of an interval."""
    if not isinstance(node, ast.Compare):
        return False
    ordered = any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
    names = {_called(each) for each in (node.left, *node.comparators)}
    return ordered and bool(names & (P_VALUES | ENDS))


def _called(node: ast.AST) -> str:
    """The name of a variable, an attribute, or a key."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and node.args:
        node = ast.Subscript(node.func, node.args[0])
    if isinstance(node, ast.Subscript):
        return str(getattr(node.slice, "value", ""))
    return str(getattr(node, "attr", getattr(node, "id", "")))
