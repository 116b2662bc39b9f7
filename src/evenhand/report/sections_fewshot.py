"""The section on few-shot classifiers: accuracy, gender bias, mitigations, class by class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report import charts_fewshot
from evenhand.report.blocks import Block, Cell, Figure, Section, Table, Text, cell, p_cell, span
from evenhand.report.charts import Chart
from evenhand.report.findings import Findings
from evenhand.report.tables_fewshot import BIAS, fewshot_tables, run_name
from evenhand.report.verdicts_fewshot import best_mitigation
from evenhand.report.wording import interval, number, percent

__all__ = ["fewshot_section"]

MITIGATIONS = {
    "neutralize": "neutralize (gendered words become neutral ones and names of persons E1, E2 …, "
    "in all texts)",
    "augment": "augment (each text given stands with its gender-swapped twin)",
    "calibrate": "calibrate (as many texts of men as of women are given of each class)",
}

Contents = Sequence[Mapping[str, Any]]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]


def fewshot_section(findings: Findings) -> Section:
    """What was found of few-shot classifiers; empty where they were not asked for."""
    contents = [content for _, content in findings.contents("fewshot")]
    missing = [
        Text(f"Not measured: {skip['metric']}, {skip['query']}: {skip['reason']}.", "warning")
        for stage in findings.of("fewshot")
        for skip in stage.skipped
    ]
    if not contents:
        return Section("fewshot", "Few-shot classifiers", missing)
    tables = fewshot_tables(contents)
    model = str(findings.subjects.get("model", {}).get("name", "the model"))
    return Section(
        "fewshot",
        "Few-shot classifiers",
        [*_explained(contents, model), *missing],
        [
            part
            for part in (
                _accuracy(contents, tables),
                _bias(contents, tables),
                _changes(contents, tables),
                _classes(contents, tables),
            )
            if part.blocks
        ],
    )


def _explained(contents: Contents, model: str) -> list[Block]:
    first = contents[0]
    task, data = first["task"], first["data"]
    tested = first["runs"]["none"]["accuracy"]["classes"]
    names = [content["network"] for content in contents]
    networks = f"the network {names[0]} learns to compare them and is"
    if len(names) > 1:
        every = f"{', '.join(names[:-1])} and {names[-1]}"
        networks = f"{len(names)} networks ({every}) learn to compare them and are"
    tried = [MITIGATIONS.get(name, name) for name in first["changes"]]
    told = [
        Text(
            f"A few-shot classifier is given {task['shots']} texts of each of {task['ways']} "
            "classes it has never seen and must say to which of them further texts belong. Here "
            f"{model} reads the texts, {task['tokens']} words and pieces of words of each at most, "
            f"and stays as it is; {networks} trained on some classes of {data['name']} and tested "
            f"on others. The classes are divided {task['splits']} times anew, so that {tested} of "
            f"{len(data['classes'])} are tested."
        ),
        Text(
            "Each test text is asked twice: as it is, and as its twin, the same text with its "
            "gendered words and names swapped. In a class with more men the man's version is the "
            "one that fits the stereotype, in a class with more women the woman's. A classifier "
            "without gender bias answers both alike."
        ),
    ]
    if tried:
        told.append(Text(f"Mitigations tried: {'; '.join(tried)}."))
    told += [Text(note) for note in first["notes"]]
    return [*told]


def _accuracy(contents: Contents, tables: Tables) -> Section:
    rows = tables["fewshot-accuracy"]
    first = contents[0]["runs"]["none"]
    runs = [
        {"name": run_name(content["network"], mitigation), **run["accuracy"]}
        for content in contents
        for mitigation, run in content["runs"].items()
    ]
    figure = _figure(
        "fewshot-accuracy",
        lambda: charts_fewshot.accuracies(
            runs, chance=first["chance"], floor=first["floor"]["accuracy"]
        ),
        "How to read it: the dot is the share of test texts told right. The thick line says how "
        "far it might move with other classes, the thin one in it with other tasks of the same "
        "classes alone. A network left of the floor does worse than counting words.",
        "Accuracy: " + "; ".join(_spoken(r["name"], r) for r in runs),
    )
    table = Table.of(
        "Accuracy on classes never trained on, and how much better than counting words",
        ("Network", "Mitigation", "Accuracy", f"{percent(rows[0]['prob'])} interval, new classes",
         "Interval, other tasks alone", "Counting words", "Beyond it", "Interval", "p", "F1",
         "Classes"),
        (
            (
                r["network"], r["mitigation"], _cell(r["value"]), _span(r),
                _span(r, "naive_low", "naive_high"), _cell(r["floor"]),
                _cell(r["beyond_floor_value"]),
                _span(r, "beyond_floor_low", "beyond_floor_high"),
                p_cell(r["beyond_floor_p_value"]), _cell(r["f1_value"]),
                cell(float(r["classes"]), 0),
            )
            for r in rows
        ),
    )  # fmt: skip
    return Section("fewshot-accuracy-part", "How well they tell classes apart", [figure, table])


def _bias(contents: Contents, tables: Tables) -> Section:
    biases = {content["network"]: content["runs"]["none"]["bias"] for content in contents}
    rows = tables["fewshot-bias"]
    figure = _figure(
        "fewshot-bias",
        lambda: charts_fewshot.bias_measures(biases),
        "How to read it: right of the dashed line the versions of texts that fit the stereotype do "
        "better (skew: men's versions). The grey band is what chance gives in the classes tested: "
        "a dot outside it is more than chance. The line says what to expect in new classes.",
        "Bias without mitigation: "
        + "; ".join(
            f"{name} {BIAS[metric]} {number(one[metric]['signed'])} "
            f"{interval(one[metric]['signed_low'], one[metric]['signed_high'])}"
            for name, one in biases.items()
            for metric in BIAS
        ),
    )
    table = Table.of(
        "Gender bias by its measures (0: none; above 0: towards the stereotype, skew: in favour of "
        "men's versions)",
        ("Network", "Mitigation", "Measure", "Value",
         f"{percent(rows[0]['prob'])} interval, new classes", "p, new classes",
         "Chance gives up to", "p of chance", "Texts", "Classes"),
        (
            (
                r["network"], r["mitigation"], BIAS[r["measure"]], _cell(r["value"]), _span(r),
                p_cell(r["p_value"]), Cell(f"± {number(r['null_high'])}", r["null_high"]),
                p_cell(r["null_p"]), cell(float(r["n"]), 0), cell(float(r["classes"]), 0),
            )
            for r in rows
        ),
    )  # fmt: skip
    sides = {"male": "men's", "female": "women's", "gap": "women's less men's"}
    genders = Table.of(
        "Accuracy on men's and women's texts as they are, all classes counting alike (a gap can "
        "have other reasons than gender: the texts differ)",
        ("Network", "Mitigation", "Texts", "Accuracy", "Interval, new classes", "p"),
        (
            (r["network"], r["mitigation"], sides[r["texts"]], _cell(r["value"]), _span(r),
             p_cell(r["p_value"]))
            for r in tables["fewshot-genders"]
        ),
        folded=True,
    )  # fmt: skip
    return Section(
        "fewshot-bias-part", "Their gender bias", [figure, table, *([genders] * bool(genders.rows))]
    )


def _changes(contents: Contents, tables: Tables) -> Section:
    changes = {
        run_name(content["network"], mitigation): change
        for content in contents
        for mitigation, change in content["changes"].items()
    }
    if not changes:
        return Section("fewshot-changes-part", "What mitigations change")
    figure = _figure(
        "fewshot-changes",
        lambda: charts_fewshot.bias_changes(changes),
        "How to read it: from the hollow dot (before) to the filled one (after); the line is the "
        "interval of the change, laid around the filled dot. A mitigation works where the filled "
        "dot lies at 0 and the line does not reach the hollow one; the last panel is its price.",
        "Association before and after: "
        + "; ".join(
            f"{name} {number(one['association']['before'])} to "
            f"{number(one['association']['after'])}"
            for name, one in changes.items()
        ),
    )
    rows = tables["fewshot-changes"]
    table = Table.of(
        "Every measure before and after, paired on the same texts",
        ("Network", "Mitigation", "Measure", "Before", "After", "Change",
         f"{percent(rows[0]['prob'])} interval of the change", "p", "Reading"),
        (
            (
                r["network"], r["mitigation"], BIAS.get(r["measure"], "Accuracy"),
                _cell(r["before"]), _cell(r["after"]), _cell(r["change"]), _span(r),
                p_cell(r["p_value"]), r["direction"],
            )
            for r in rows
        ),
    )  # fmt: skip
    best = best_mitigation(contents)
    return Section(
        "fewshot-changes-part", "What mitigations change",
        [*([Text(best)] if best else []), figure, table],
    )  # fmt: skip


def _classes(contents: Contents, tables: Tables) -> Section:
    first = contents[0]
    found = first["runs"]["none"]["associations"]
    figure = _figure(
        "fewshot-associations",
        lambda: charts_fewshot.associations(found),
        "How to read it: right of 0 a text fits its class better than its gender-swapped twin "
        "does. With a stereotype, men's texts lie right of 0 in classes of men and women's in "
        "classes of women, and the others left of it.",
        f"Associations of {first['network']} by class and gender: "
        + "; ".join(f"{r['name']}, {r['gender']} {number(r['association'])}" for r in found),
    )
    plain = {
        name: [r for r in tables[f"fewshot-{name}"] if r["mitigation"] == "none"]
        for name in ("classes", "associations")
    }
    classes = Table.of(
        "Accuracy class by class, without mitigation",
        ("Class", "Leans", "Women", "Network", "Accuracy", "Interval", "F1", "Interval of F1",
         "Most often taken for", "Texts"),
        (
            (
                r["name"], r["leaning"] or "neither", _share(r["share_of_women"]), r["network"],
                _cell(r["accuracy"]), _span(r, "accuracy_low", "accuracy_high"), _cell(r["f1"]),
                _span(r, "f1_low", "f1_high"), r["taken_for"] or "–", cell(float(r["texts"]), 0),
            )
            for r in plain["classes"]
        ),
        words=True, folded=True,
    )  # fmt: skip
    associations = Table.of(
        "Association class by class, without mitigation (above 0: the text fits better than its "
        "twin)",
        ("Class", "Leans", "Texts of", "Network", "Association", "Interval", "Texts"),
        (
            (r["name"], r["leaning"], {"male": "men", "female": "women"}[r["gender"]], r["network"],
             _cell(r["association"]), _span(r), cell(float(r["texts"]), 0))
            for r in plain["associations"]
        ),
        words=True, folded=True,
    )  # fmt: skip
    return Section("fewshot-classes-part", "Class by class", [figure, associations, classes])


def _figure(name: str, draw: Callable[[], Chart], caption: str, words: str) -> Figure | Text:
    """The figure, or the reason why there is none to draw."""
    try:
        return Figure.of(name, draw(), caption, words)
    except InputError as error:
        return Text(f"No figure here: {error}.", "warning")


def _spoken(name: str, score: Mapping[str, Any]) -> str:
    return f"{name} {number(score['value'])} {interval(score['low'], score['high'])}"


def _cell(value: float | None) -> Cell:
    return Cell(number(value), value)


def _span(row: Mapping[str, Any], low: str = "low", high: str = "high") -> Cell:
    return span(row[low], row[high])


def _share(value: float | None) -> Cell:
    return Cell("–" if value is None else percent(value), value)
