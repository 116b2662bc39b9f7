"""The results as Markdown: blocks for a model card and a data card, and a summary on one page.

The metadata of a card is in the format that the Hugging Face hub checks. It has no field for an
interval, so the interval is part of the metric's name, where readers see it, and with the p-value
and the ideal in its `args`, where programs do.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from evenhand.errors import InputError
from evenhand.files import replace_file
from evenhand.instruments import LANGUAGE, Declaration, find
from evenhand.report.answer import is_simulated
from evenhand.report.blocks import render_text
from evenhand.report.findings import Findings, read_findings
from evenhand.report.methods import label_of, method, methods
from evenhand.report.verdicts import SUBJECTS, Number, Subject, Verdict, leads, rules
from evenhand.wording import number, percent, shortest, slug

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

JUDGED: Mapping[str, tuple[Subject, ...]] = {
    "masked": ("masked", "fewshot"),
    "causal": ("causal", "answers", "fewshot"),
    "encoder": ("encoder", "fewshot"),
    "vectors": ("vectors",),
    "corpus": ("corpus", "fewshot"),
}
"""The verdicts of each kind of card: classifiers are made of a model and data."""

TASKS: Mapping[str, tuple[str, str]] = {
    "vectors": ("feature-extraction", "Word vectors"),
    "masked": ("fill-mask", "Masked language model"),
    "causal": ("text-generation", "Causal language model"),
    "answers": ("text-generation", "What the model writes"),
    "encoder": ("sentence-similarity", "Sentence encoder"),
    "fewshot": ("text-classification", "Few-shot classification"),
}
"""The hub's name of what is done with each subject, and ours."""

CARDS = ("summary.md", "model_card.md", "vectors_card.md", "data_card.md")
SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
FACTS = {
    "words": "words",
    "dim": "dimensions",
    "content_sha256": "SHA-256 of the content",
    "weights": "weights",
    "fingerprint": "fingerprint",
    "texts": "texts",
    "classes": "classes",
    "digest": "digest",
}
"""What is said of each subject; where it was read from is the auditor's own business."""


# ------------------------------------------------------------------------------------- Markdown

_SPECIAL = re.compile(r"([\\`*_\[\]|~]|<(?=[A-Za-z/!?])|&(?=#?\w+;))")


def escape(text: str) -> str:
    r"""The text as it is, whatever signs it has, on one line of Markdown.

    >>> print(escape("<b>a|b_c, 2 < 3 & 4"))
    \<b>a\|b\_c, 2 < 3 & 4
    """
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table of plain texts, which are escaped here; nothing where there are no rows.

    >>> print(table(("a", "b"), [("x", "1|2")]))
    | a | b |
    | --- | --- |
    | x | 1\|2 |
    """
    lines = [[escape(cell) for cell in row] for row in rows]
    if not lines:
        return ""
    ruled = [[escape(header) for header in headers], ["---"] * len(headers), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in ruled)


def render_markdown(template: str, **values: object) -> str:
    """The template with its runs of empty lines collapsed."""
    text = render_text(
        template, escape=escape, table=table, span=span, about=_about, shortest=shortest, **values
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def span(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval as text: brackets could be taken for a link.

    >>> span(-0.095, 0.021)
    '−0.095 to 0.021'
    """
    return f"{number(low, digits)} to {number(high, digits)}"


# ---------------------------------------------------------------------------------------- cards


def model_card(findings: Findings, about: Literal["model", "vectors"] | None = None) -> str:
    """The results on a model as a block for its card: metadata first, then what they say.

    A card is about one model: the language model where one was audited, else the vectors, unless
    `about` says which.
    """
    kinds = [*(LANGUAGE if about != "vectors" else ()), *(["vectors"] if about != "model" else [])]
    there = [name for name in kinds if name in findings.subjects]
    if not there:
        wanted = about or "model or vectors"
        raise InputError(
            f"model card: expected an audit of {wanted}, got one of "
            f"{', '.join(findings.subjects) or 'nothing'}"
        )
    kind = there[0]
    name = str(findings.subjects[kind]["name"])
    judged = [v for v in findings.verdicts if v.subject in JUDGED[kind]]
    return _card(findings, kind, name, judged, _model_metadata(name, findings, judged))


def data_card(findings: Findings) -> str:
    """The results on the data as a block for their card."""
    data = findings.subjects.get("corpus")
    if data is None:
        raise InputError(
            f"data card: expected an audit of data, got one of {', '.join(findings.subjects)}"
        )
    judged = [v for v in findings.verdicts if v.subject in JUDGED["corpus"]]
    front = _dataset_metadata(str(data["name"]), int(data["texts"]))
    return _card(findings, "corpus", str(data["name"]), judged, front, data=_data_facts(findings))


def _card(
    findings: Findings, kind: str, name: str, judged: Sequence[Verdict], front: str, **more: object
) -> str:
    return render_markdown(
        "card.md.jinja",
        front=front,
        name=name,
        findings=findings,
        **_common(findings, judged, JUDGED[kind], (kind,)),
        methods=_methods(findings, JUDGED[kind]),
        **{"data": None, **more},
    )


def summary_markdown(findings: Findings) -> str:
    """All verdicts with their numbers on one page, and where the figures and tables are."""
    judged = findings.verdicts
    files = sorted(findings.run.get("files", []))
    return render_markdown(
        "summary.md.jinja",
        findings=findings,
        titles=SUBJECTS,
        **_common(
            findings,
            judged,
            tuple(dict.fromkeys(verdict.subject for verdict in judged)),
            tuple(findings.subjects),
        ),
        mitigated=[
            (stage, c)
            for stage in findings.of("mitigation")
            for c in stage.comparisons
            if c.metric == leads("vectors")
        ],
        figures=_links(files, "figures"),
        tables=_links(files, "tables"),
    )


def write_cards(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the cards of the audit in `folder` beside its page.

    `summary.md` always; `model_card.md` on the model, or on the vectors where no model was
    audited; `vectors_card.md` where both were; `data_card.md` where data were. Cards of an earlier
    audit in the folder that do not belong to this one are removed.
    """
    findings = read_findings(folder)
    texts = {"summary.md": summary_markdown(findings)}
    if findings.model or "vectors" in findings.subjects:
        texts["model_card.md"] = model_card(findings)
    if findings.model and "vectors" in findings.subjects:
        texts["vectors_card.md"] = model_card(findings, "vectors")
    if "corpus" in findings.subjects:
        texts["data_card.md"] = data_card(findings)
    for name in CARDS:
        if name not in texts:  # of an earlier audit in this folder
            (Path(folder) / name).unlink(missing_ok=True)
    written = []
    for name, text in texts.items():
        written.append(Path(folder) / name)
        with replace_file(written[-1], entry=True) as file:
            file.write(text.encode())
    return written


# ------------------------------------------------------------------------------- parts of cards


def _common(
    findings: Findings,
    judged: Sequence[Verdict],
    subjects: Sequence[Subject],
    kinds: Sequence[str],
) -> dict[str, Any]:
    """The common values of cards and summaries."""
    return {
        "version": findings.run["versions"]["evenhand"],
        "day": findings.run["time"][:10],
        "verdicts": judged,
        "numbers": [(v, shown) for v in judged for shown in numbers_of(findings, v)],
        "limits": list(dict.fromkeys(v.cannot_mean for v in judged if v.cannot_mean)),
        "subjects": list(dict.fromkeys(verdict.subject for verdict in judged)),
        "simulated": is_simulated(findings),
        "missing": _missing(findings, subjects),
        "facts": _run_facts(findings, kinds),
    }


def numbers_of(findings: Findings, verdict: Verdict) -> list[Number]:
    """The numbers behind a verdict, for vectors with those of all deciding tests and of the
    measures shown with them.
    """
    numbers = list(verdict.numbers)
    if verdict.subject == "vectors":
        numbers += [
            Number.of(m, label_of(m, verdict.topic))
            for m in findings.measured("measures", verdict.topic)
            if (instrument := find(m.metric)) is not None
            and (instrument.declaration.decides or instrument.declaration.role == "shown")
        ]
    first: dict[str, Number] = {}
    for shown in numbers:
        first.setdefault(shown.label, shown)
    return list(first.values())


def _about(verdict: Verdict) -> str:
    return f"{verdict.name}, {verdict.topic}" if verdict.name else verdict.topic


def _missing(findings: Findings, subjects: Sequence[Subject]) -> list[str]:
    """Names of what failed, could not be measured or was left out."""
    stages = [stage for stage in findings.stages if stage.subject in subjects]
    lines = [f"{stage.title} failed: {stage.failed}" for stage in stages if stage.failed]
    unmeasured: dict[str, list[Mapping[str, str]]] = {}
    for skip in (skip for stage in stages for skip in stage.skipped):
        unmeasured.setdefault(label_of(skip["metric"]), []).append(skip)
    for name, skips in unmeasured.items():
        queries = ", ".join(dict.fromkeys(skip["query"] for skip in skips if skip["query"]))
        first = skips[0]
        reason = first["reason"].removeprefix(f"{first['metric']} '{first['query']}': ")
        more = " (the first of them)" if len(skips) > 1 else ""
        what = f"{name}: {queries}" if queries else name
        lines.append(f"Not measured: {what}. The reason{more}: {reason}")
    words = {word for stage in stages for m in stage.measurements for word in m.left_out}
    if words:
        lines.append(f"Words without a vector: {', '.join(sorted(words))}")
    return lines


def _methods(findings: Findings, subjects: Sequence[Subject]) -> dict[str, Any]:
    """How it was measured: the measures, and the rules of the verdicts."""
    rows: list[Declaration] = []
    for subject in subjects:
        for part in (subject, "posterior") if subject == "vectors" else (subject,):
            if part == "vectors":
                tested = {
                    t.metric for v in findings.verdicts if v.subject == "vectors" for t in v.tests
                }
                rows += [
                    known for name in methods(part) if name in tested and (known := method(name))
                ]
            elif part in findings.settings["parts"]:
                rows += methods(part).values()
    titles = [SUBJECTS[subject] for subject in subjects]
    return {
        "measures": rows,
        "rules": [
            f"{title}: {rule}"
            for title, given in rules(findings)
            if title in titles
            for rule in given
        ],
    }


def _run_facts(findings: Findings, kinds: Iterable[str]) -> str:
    """The subjects of the audit, the seed and the versions."""
    rows: list[tuple[str, str]] = []
    for kind in kinds:
        subject: Mapping[str, Any] = findings.subjects[kind]
        rows.append((kind.capitalize(), str(subject["name"])))
        for key, words in FACTS.items():
            value = subject.get(key)
            if value:
                text = f"{value:,}" if isinstance(value, int) else str(value)
                rows.append((f"{kind.capitalize()}: {words}", text))
    rows.append(("Seed", str(findings.run["seed"])))
    rows += [(f"Version of {name}", str(v)) for name, v in findings.run["versions"].items()]
    return table(("What", "Value"), rows)


def _links(files: Sequence[str], folder: str) -> list[tuple[str, str]]:
    return [
        (Path(name).stem.replace("-", " "), name) for name in files if name.startswith(f"{folder}/")
    ]


def _data_facts(findings: Findings) -> dict[str, Any]:
    """The data in numbers, class by class where genders are known."""
    data, counts = findings.subjects["corpus"], findings.details("odds") or {}
    measured = findings.measured("odds")
    genders = {"men": "Texts of men", "women": "Texts of women", "unknown": "Gender not known"}
    facts = [("Texts", f"{data['texts']:,}"), ("Classes", f"{data['classes']:,}")]
    facts += [(words, f"{counts[key]:,}") for key, words in genders.items() if key in counts]
    facts += [(f"Left out: {why}", f"{n:,}") for why, n in data["left_out"].items()]
    return {
        "facts": table(("What", "Value"), facts),
        "without_gender": ", ".join(counts.get("without_gender") or ()),
        "measured": measured,
        "halved": ", ".join(m.query for m in measured if m.details.get("corrected")),
        "filter": findings.details("filter"),
    }


# ------------------------------------------------------------------------------------- metadata


def _model_metadata(name: str, findings: Findings, judged: Sequence[Verdict]) -> str:
    """The `model-index` of the numbers behind some verdicts as YAML; empty without any number."""
    from huggingface_hub import ModelCardData

    results = [
        _result(findings, verdict, shown)
        for verdict in judged
        for shown in numbers_of(findings, verdict)
        if _known(shown.value)
    ]
    if not results:
        return ""
    return f"---\n{ModelCardData(model_name=name, eval_results=results).to_yaml()}\n---"


def _dataset_metadata(name: str, texts: int) -> str:
    """The part of a data set's metadata that an audit knows."""
    from huggingface_hub import DatasetCardData

    size = SIZES[min(max(len(str(texts)) - 3, 0), len(SIZES) - 1)]
    return f"---\n{DatasetCardData(pretty_name=name, size_categories=[size]).to_yaml()}\n---"


def without_aside(label: str) -> str:
    """A number's label without the aside at its end, which may itself be a result.

    >>> without_aside("Bayesian contrast (probability: 0.98)")
    'Bayesian contrast'
    """
    return re.sub(r"\s*\([^()]*\)$", "", label)


def _result(findings: Findings, verdict: Verdict, shown: Number) -> EvalResult:
    from huggingface_hub import EvalResult

    task, task_name = TASKS[verdict.subject]
    dataset, dataset_name = _dataset(findings, verdict)
    prob = findings.settings["prob"]
    ends = {"low": shown.low, "high": shown.high, "prob": prob}
    values = {**ends, "p_value": shown.p_value, "ideal": shown.ideal}
    return EvalResult(
        task_type=task,
        task_name=task_name,
        dataset_type=dataset,
        dataset_name=dataset_name,
        metric_type=slug(without_aside(shown.label)).replace("-", "_"),
        metric_value=_short(shown.value),
        metric_name=f"{shown.label} ({percent(prob)} interval {span(shown.low, shown.high)})",
        metric_args={key: _short(value) for key, value in values.items() if _known(value)},
    )


def _dataset(findings: Findings, verdict: Verdict) -> tuple[str, str]:
    """What the numbers were measured on: an id of the hub's where there is one, and a name."""
    data: Any = findings.subjects.get("corpus")
    if verdict.subject == "fewshot" and data is not None:
        source = str(data["source"])
        known = source.removeprefix("hf:") if source.startswith("hf:") else slug(data["name"])
        return known, str(data["name"])
    kinds = {"vectors": "word lists", "fewshot": "texts", "answers": "prompts"}
    kind = kinds.get(verdict.subject, "sentences")
    return slug(f"evenhand {verdict.topic} {kind}"), f"Evenhand's {kind}: {verdict.topic}"


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _short(value: float) -> float:
    """Six digits: more than the intervals allow, and none that are numerical noise."""
    return float(f"{value:.6g}")
