"""How far a formula is from the shell, what names no measure, and that only the judge decides."""

from __future__ import annotations

import ast
import io
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import evenhand
from evenhand.cli import run
from evenhand.instruments import PACKAGES, all_declarations

ROOT = Path(evenhand.__file__).parent
MOST_FILES = 10
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
ORDINARY = {"difference", "words"}
"""Names of instruments of answers that are ordinary words, such as kinds of comparisons."""


@pytest.mark.parametrize(
    ("command", "file", "function"),
    [
        (
            "measure weat glove --weat 6 --json",
            "statistics/association.py",
            "association",
        ),
        ("measure pronouns mini --data - --json", "models/gender_words.py", "bias"),
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
    packages = {about.name: PACKAGES[about.subjects[0]] for about in all_declarations()}
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


def test_what_reads_declarations_names_no_instrument():
    named = {
        (name, file)
        for name, files in naming().items()
        for file in files
        if file.startswith(tuple(f"{part}/" if "." not in part else part for part in NAMELESS))
        and name not in ORDINARY
    }
    assert not named


P_VALUES = {"p", "p_value", "p_values", "p_holm", "p_corrected", "p_tested", "null_p"}
ENDS = {"low", "high"}
UNJUDGED = {
    ("charts.py", "inline"): "the ends of an axis",
    ("fewshot/episodes.py", "draw"): "row numbers",
    ("fewshot/metrics/bias.py", "fold"): "the interval of a size",
    ("gate/checking.py", "fold"): "the interval of a size",
    ("gate/planning.py", "_targets"): "whether an interval has a width",
    ("gate/planning.py", "_independent"): "whether a ratio has a logarithm",
    ("gate/policy.py", "_rule"): "whether a limit was given",
    ("gate/policy.py", "problem"): "limits in the wrong order",
    ("gate/policy.py", "one_sided_problem"): "limits on one side of the ideal",
    ("models/asking.py", "_percent"): "the decimals of a probability",
    ("models/metrics/professions.py", "known"): "positions in a text",
    ("models/metrics/professions.py", "_measure_causal"): "positions in a text",
    ("models/metrics/disco.py", "_result"): "what the measure counts, by its definition",
    ("models/words.py", "_pieces"): "positions in a text",
    ("models/words.py", "_over"): "positions in a text",
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


ORDERED = re.compile(
    r"\b(?:p|p_value|p_holm|p_corrected|low|high)\b\s*[<>]=?\s*[-\w.]"
    r"|[-\w.)]\s+[<>]=?\s*[\w.]*\b(?:p|p_value|p_holm|p_corrected|low|high)\b"
)
UNJUDGED_PAGES = {
    ("explore/pages/explore.js", "const percent = (p)"): "the decimals of a probability",
    ("report/templates/interactive.js", "const percent = (p)"): "the decimals of a probability",
    ("report/templates/interactive.js", "if (least <= low"): "`judging.lean` where no Python runs",
    ("report/templates/interactive.js", "return high < least"): "`judging.lean`, as above",
}
"""The lines of templates and scripts that do."""


def test_no_template_or_script_does() -> None:
    seen = set()
    for path in sorted(ROOT.rglob("*")):
        if path.suffix not in (".jinja", ".html", ".js") or "data" in path.parts:
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            code = line if path.suffix == ".js" else " ".join(re.findall(r"{[%{].*?[%}]}", line))
            if ORDERED.search(code):
                seen.add((path.relative_to(ROOT).as_posix(), line.strip()))
    found = {
        (name, key) for name, line in seen for n, key in UNJUDGED_PAGES if n == name and key in line
    }
    assert found == set(UNJUDGED_PAGES)
    assert len(seen) == len(UNJUDGED_PAGES), seen


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
