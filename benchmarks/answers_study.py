"""The tables of docs/experiments/answers.md.

    python benchmarks/answers_study.py convert ../shared/data/published -o FOLDER
    python benchmarks/answers_study.py measure ../shared/data/published [-o docs/results/answers]
    python benchmarks/answers_study.py tables

`convert` writes the published answers as files that `evenhand answers measure` reads. `measure`
makes the tables of numbers, one CSV each; SmolLM2's own answers are read from smollm.jsonl.gz in
their folder. `tables` prints them as the page has them. No text of others is in any of them.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import evenhand as eh
from evenhand.answers.table import Answers, read_answers
from evenhand.answers.whom import whom
from evenhand.errors import InputError
from evenhand.instruments import judge_results
from evenhand.results import Measurement
from evenhand.statistics.clusters import cluster_mean
from evenhand.statistics.intervals import welch
from published import drop_zero

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results" / "answers"
SAMPLES = 25
WORDINGS = 3
STEREOTYPED = 12
"""The first 12 of the 24 groups of a topic are those that the authors call stereotyped."""
LABE = {
    "ChatGPT, biographies": "chatgpt_clg_bios",
    "ChatGPT, reviews": "chatgpt_clg_professor",
    "Llama 3, reviews": "llama3_clg_professor",
    "ChatGPT, letters": "chatgpt_clg_letters",
    "Llama 3, biographies": "llama3_clg_bios",
    "Llama 3, letters": "llama3_clg_letters",
}
PAIRED = list(LABE)[:3]
"""The kinds of texts that there are without the mitigation prompt too."""
ALL_WORDS = "all words: mean |z| above that of permuted groups"
SCORES = ("length", "sentiment")
LEVEL = 0.05
"""Below this a mean over texts calls a difference significant."""


# ------------------------------------------------------------------------------ what was published


def read_decodingtrust(folder: Path) -> pd.DataFrame:
    """DecodingTrust's statements with their samples, as `+`, `-`, `0` and `?`.

    The rows of a topic are 24 groups of people in three wordings, in the same order throughout.
    """
    table = pd.read_csv(folder / "decodingtrust_stereotype.csv.xz", keep_default_na=False)
    return _with_groups(table, table.groupby(["model", "system_prompt", "topic"]).cumcount())


def read_gpt35(folder: Path) -> pd.DataFrame:
    """The whole answers of GPT-3.5, one row per sample."""
    table = pd.read_csv(folder / "gpt35_answers.csv.xz", keep_default_na=False)
    return _with_groups(table, table.groupby(["system_prompt", "topic", "sample"]).cumcount())


def _with_groups(table: pd.DataFrame, place: pd.Series) -> pd.DataFrame:
    group = place // WORDINGS
    first = table[table["topic"] == "criminals"].groupby(group)["statement"].first()
    return table.assign(
        group=group.map(first.str.removesuffix(" are criminals.")),
        kind=np.where(group < STEREOTYPED, "stereotyped", "the rest"),
        wording=place % WORDINGS,
    )


def read_labe(folder: Path, kind: str, *, mitigated: bool) -> pd.DataFrame:
    """One kind of texts of LABE; `place` is the occupation or department.

    The prompt that Llama 3 repeats at the start of a text is removed.
    """
    name = LABE[kind] + ("_mitigate" if mitigated else "")
    table = pd.read_csv(folder / "labe" / f"{name}.csv.xz", keep_default_na=False)
    texts = table.filter(regex="_gen$").iloc[:, 0]
    own = [text.removeprefix(prompt) for text, prompt in zip(texts, table["prompts"], strict=True)]
    place = "occupation" if "occupation" in table else "department"
    return pd.DataFrame(
        {
            "name": table["name"],
            "race": table["race"],
            "gender": table["gender"],
            "place": table[place],
            "age": table["age"].astype(str) if "age" in table else "",
            "prompt": table["prompts"],
            "text": [text.replace("<return>", "\n").strip() for text in own],
            "mitigation": "after" if mitigated else "before",
        }
    )


# ------------------------------------------------------------------------------------ what it says


def agreement_table(statements: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The share of agreement by model and system prompt, and its interval over three units."""
    for (model, system), rows in statements.groupby(["model", "system_prompt"]):
        agrees = np.array([[each == "+" for each in row] for row in rows["answers"]])
        shares = agrees.mean(axis=1)
        codes, names = pd.factorize(rows["topic"])
        single = cluster_mean(agrees.ravel(), np.repeat(codes, SAMPLES), len(names))
        value, low, high = single.share(0.95)
        yield {
            "model": model,
            "system": system,
            "texts": agrees.size,
            "value": value,
            "low": low,
            "high": high,
            "half_topics": _half(shares, rows["topic"]),
            "half_statements": _half(shares, rows["statement"]),
            "half_texts": 1.959964 * np.sqrt(value * (1 - value) / agrees.size),
            "icc": icc(agrees.astype(float)),
            "neither": rows["answers"].str.count("[0?]").sum() / agrees.size,
        }


def _half(values: Any, unit: pd.Series) -> float:
    """Half the width of Student's interval of a mean over units of equal size."""
    means = pd.Series(np.asarray(values)).groupby(unit.to_numpy()).mean()
    return float(stats.t.ppf(0.975, len(means) - 1) * means.std() / np.sqrt(len(means)))


def icc(table: Any) -> float:
    """How alike the samples of a row are: one-way analysis of variance."""
    rows, samples = table.shape
    between = samples * table.mean(axis=1).var(ddof=1)
    within = table.var(axis=1, ddof=1).mean()
    total = between + (samples - 1) * within
    return float(max(0.0, (between - within) / total)) if rows > 1 and total else float("nan")


def agreement_scores(statements: pd.DataFrame) -> pd.DataFrame:
    """The shares as `evenhand scores` reads them: item, topic, model, score."""
    return pd.DataFrame(
        {
            "item": statements["topic"] + ": " + statements["statement"],
            "topic": statements["topic"],
            "model": statements["model"] + ", " + statements["system_prompt"],
            "score": statements["answers"].str.count(r"\+") / SAMPLES,
        }
    )


def pairs_table(statements: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """All pairs of models and system prompts: the judge's outcome, and that of texts alone."""
    scores = agreement_scores(statements)
    found = eh.scores.analyze(scores, cluster=["topic"])
    means = scores.groupby("model")["score"].agg(["mean", "size"])
    pairs = len(found.comparisons)
    for each in found.comparisons:
        one, two = (means.loc[m.query] for m in (each.after, each.before))
        error = np.sqrt(
            sum(m["mean"] * (1 - m["mean"]) / (m["size"] * SAMPLES) for m in (one, two))
        )
        yield {
            "pair": f"{each.after.query} - {each.before.query}",
            "value": each.change.value,
            "low": each.change.low,
            "high": each.change.high,
            "p": each.p_corrected,
            "outcome": each.details["outcome"],
            "p_texts": min(1.0, pairs * 2 * stats.norm.sf(abs(one["mean"] - two["mean"]) / error)),
        }


def labe_answers(table: pd.DataFrame, group: str, **columns: Any) -> Answers:
    """Texts as answers: names are sampled, and so are the occupations or departments."""
    return read_answers(table, text="text", item="name", wording="place", group=group, **columns)


def contrasts(answers: Answers, score: str) -> list[tuple[Measurement, tuple[float, float, float]]]:
    """The contrasts of the groups, each with what a mean over texts gives: interval and p.

    The score is refusals, decisions, or one of `difference`.
    """
    if score in ("refusals", "decisions"):
        chosen = {"refusals": eh.answers.Refusals, "decisions": eh.answers.Decisions}[score]()
    else:
        chosen = eh.answers.Difference(score=score, permutations=0)
    values = chosen.scores(answers).values
    (column,) = answers.groups
    labels = np.array([label or "" for label in answers.groups[column]])
    rows = []
    for m in chosen.measure(answers):
        first, second = m.details["groups"]
        others = (labels != first) & (labels != "")
        rest = others if second == "the others" else labels == second
        rows.append((m, plain_difference(values[labels == first], values[rest])))
    return rows


def plain_difference(one: Any, two: Any) -> tuple[float, float, float]:
    """Interval and p of a difference of means by Welch's t, all texts as if independent."""
    one, two = one[np.isfinite(one)], two[np.isfinite(two)]
    _, low, high = welch(one, two)
    return low, high, float(stats.ttest_ind(one, two, equal_var=False).pvalue)


def judged(
    found: Sequence[tuple[dict[str, Any], Measurement, tuple[float, ...]]],
) -> Iterator[dict[str, Any]]:
    """The rows of a table whose tests are one family."""
    outcomes = judge_results([m for _, m, _ in found])
    for (about, m, naive), (_, judgement) in zip(found, outcomes, strict=True):
        first, second = m.details["groups"]
        yield {
            **about,
            "contrast": f"{first} - {second}",
            "n": m.n,
            "value": m.value,
            "low": m.low,
            "high": m.high,
            "p": judgement.p,
            "outcome": judgement.outcome,
            "low_texts": naive[0],
            "high_texts": naive[1],
            "p_texts": naive[2],
        }


def gaps_table(folder: Path) -> Iterator[dict[str, Any]]:
    """Length and sentiment of LABE's texts by gender and race, without the mitigation prompt."""
    found = []
    for kind in PAIRED:
        table = read_labe(folder, kind, mitigated=False)
        for score in SCORES:
            for group in ("gender", "race"):
                about = {"texts": kind, "score": score}
                found += [(about, *each) for each in contrasts(labe_answers(table, group), score)]
    yield from judged(found)


def read_pairs(folder: Path, kind: str) -> pd.DataFrame:
    """The texts of the same people without and with the mitigation prompt."""
    before, after = (read_labe(folder, kind, mitigated=each) for each in (False, True))
    same = ["name", "place", "age"]
    return pd.concat([before.merge(after[same], on=same), after], ignore_index=True)


def mitigation_table(folder: Path) -> Iterator[dict[str, Any]]:
    """What the mitigation prompt changes: the mean, and the gap between women and men."""
    found = []
    for kind in PAIRED:
        table = read_pairs(folder, kind)
        for score in SCORES:
            about = {"texts": kind, "score": score}
            (mean,) = contrasts(labe_answers(table, "mitigation"), score)
            values = eh.answers.Difference(score=score).scores(labe_answers(table, "mitigation"))
            own = table.assign(value=values.values).set_index(["name", "place", "age"])
            before, after = (own[own["mitigation"] == each] for each in ("before", "after"))
            changed = after.assign(change=after["value"] - before["value"]).reset_index()
            answers = labe_answers(changed, "gender", score="change")
            (gap,) = contrasts(answers, "change")
            found += [({**about, "of": "mean"}, *mean), ({**about, "of": "gap"}, *gap)]
    yield from judged(found)


def gpt35_table(folder: Path) -> Iterator[dict[str, Any]]:
    """GPT-3.5 about the groups that the authors call stereotyped, less the rest."""
    table = read_gpt35(folder)
    table = table.assign(agrees=(table["label"] == 1).astype(float))
    found = []
    for system, rows in table.groupby("system_prompt"):
        by_group = read_answers(rows, text="answer", item="statement", group="group")
        masked = eh.answers.Difference(score="sentiment").scores(by_group).values
        rows = rows.assign(masked=masked)
        columns = {"text": "answer", "item": "group", "wording": "topic", "group": "kind"}
        whole = read_answers(rows.assign(outcome="answered"), score="agrees", **columns)
        answers = read_answers(rows, score="masked", **columns)
        for name, subject, score in (
            ("agreement", whole, "agrees"),
            ("length", answers, "length"),
            ("sentiment", answers, "masked"),
            ("refusals", answers, "refusals"),
        ):
            (row,) = contrasts(subject, score)
            found.append(({"system": system, "score": name}, *row))
    yield from judged(found)


def reading_table(folder: Path) -> Iterator[dict[str, Any]]:
    """The authors' rule and our reading of GPT-3.5's answers: the share that agrees, by each."""
    for system, rows in read_gpt35(folder).groupby("system_prompt"):
        answers = read_answers(rows, text="answer", item="statement", topic="topic")
        ours = eh.answers.StatementAgreement().scores(answers).values
        theirs = (rows["label"] == 1).to_numpy(float)
        refused = np.array([each == "refused" for each in answers.outcomes], dtype=float)
        read = np.isfinite(ours)
        topics = rows["topic"].to_numpy()
        everything = np.full(len(rows), fill_value=True)
        disagree = (rows["label"] == -1).to_numpy()
        for name, values, used in (
            ("agrees, authors' rule", theirs, everything),
            ("agrees, our reading", ours, read),
            ("agrees, reading less rule", ours - theirs, read),
            ("refused", refused, everything),
            ("refused, of what the rule calls disagreement", refused, disagree),
        ):
            codes, names = pd.factorize(topics[used])
            mean = cluster_mean(values[used], codes, len(names))
            half = float(stats.t.ppf(0.975, mean.freedom)) * np.sqrt(mean.variance)
            change = (mean.value, mean.value - half, mean.value + half)
            estimate = change if "less" in name else mean.share(0.95)
            own = dict(zip(("value", "low", "high"), map(float, estimate), strict=True))
            yield {"system": system, "share": name, "n": int(used.sum()), **own}


def words_table(folder: Path) -> Iterator[dict[str, Any]]:
    """Words of texts about women against those about men: all together, and those that differ."""
    for kind in PAIRED:
        table = read_labe(folder, kind, mitigated=False)
        answers = read_answers(table, text="text", item="place", group="gender", prompt="prompt")
        (m,) = eh.answers.DistinctiveWords().measure(answers)
        about = {"texts": kind, "women": "", "men": ""}
        yield {**about, "word": ALL_WORDS, "value": m.value, "low": m.low, "high": m.high, "p": m.p}
        for row in list(m.items)[: m.details["differ"]]:
            yield {
                **about,
                "women": row["first"],
                "men": row["second"],
                "word": row["word"],
                "value": row["log_odds"],
                "low": row["low"],
                "high": row["high"],
                "p": row["p_corrected"],
            }


def whom_table(folder: Path) -> Iterator[dict[str, Any]]:
    """Whom our reader finds in texts whose prompt states a gender: its errors."""
    for kind in LABE:
        parts = [read_labe(folder, kind, mitigated=True)]
        parts += [read_labe(folder, kind, mitigated=False)] if kind in PAIRED else []
        table = pd.concat(parts)
        read = table["text"].map(whom)
        for gender, right in (("female", "women"), ("male", "men")):
            own = read[table["gender"] == gender]
            names = table.loc[table["gender"] == gender, "name"]
            codes, levels = pd.factorize(names)
            value, low, high = cluster_mean((own == right).astype(float), codes, len(levels)).share(
                0.95
            )
            yield {
                "texts": kind,
                "gender": gender,
                "n": len(own),
                "value": value,
                "low": low,
                "high": high,
            }


def representation_table(folder: Path) -> Iterator[dict[str, Any]]:
    """Whom SmolLM2 writes about in occupations of which nothing states a gender."""
    path = folder / "smollm-occupations.jsonl.gz"
    answers = read_answers(path)
    (share,) = listed(eh.answers.Representation().measure(answers))
    table = pd.read_json(path, lines=True)
    table["woman"] = eh.answers.Representation().scores(answers).values
    held = table[table["majority"].isin(["women", "men"])]
    ((change, naive),) = contrasts(read_answers(held, group="majority", score="woman"), "woman")
    one, two = (judgement for _, judgement in judge_results([share, change]))
    first, second = change.details["groups"]
    rows = [
        ("women, of women and men", share, one, ("", "")),
        (f"the same, occupations of {first} - of {second}", change, two, naive[:2]),
        *((part.query, part, None, ("", "")) for part in share.select("category")),
    ]
    for name, m, judgement, texts in rows:
        yield {
            "share": name,
            "n": m.n,
            "value": m.value,
            "low": m.low,
            "high": m.high,
            "p": "" if judgement is None else judgement.p,
            "outcome": "" if judgement is None else judgement.outcome,
            "low_texts": texts[0],
            "high_texts": texts[1],
        }


def listed(found: Measurement | Iterable[Measurement]) -> list[Measurement]:
    """What an instrument returns, as a list."""
    return [found] if isinstance(found, Measurement) else list(found)


def smollm_table(folder: Path) -> Iterator[dict[str, Any]]:
    """SmolLM2's own answers to counterfactual prompts and to decisions."""
    found = []
    for prompts, scores in (
        ("counterfactuals", ("length", "sentiment", "refusals")),
        ("decisions", ("decisions", "refusals")),
    ):
        for score in scores:
            for group in ("gender", "race"):
                answers = read_answers(folder / f"smollm-{prompts}.jsonl.gz", group=group)
                about = {"prompts": prompts, "score": score}
                try:
                    found += [(about, *each) for each in contrasts(answers, score)]
                except InputError as error:
                    print(f"{prompts}, {group}: not measured: {error}")
    yield from judged(found)


# ------------------------------------------------------------------------------- files and tables


def convert(args: argparse.Namespace) -> None:
    """The published answers as files that `evenhand answers measure` and `scores` read."""
    args.output.mkdir(parents=True, exist_ok=True)

    def save(name: str, table: pd.DataFrame) -> None:
        table.to_csv(args.output / f"{name}.csv", index=False)

    save("decodingtrust", agreement_scores(read_decodingtrust(args.folder)))
    save("gpt35", read_gpt35(args.folder))
    for kind, name in LABE.items():
        save(f"{name}_after", read_labe(args.folder, kind, mitigated=True))
        if kind in PAIRED:
            save(name, read_labe(args.folder, kind, mitigated=False))
            save(f"{name}_pairs", read_pairs(args.folder, kind))


def measure(args: argparse.Namespace) -> None:
    """All tables of numbers."""
    statements = read_decodingtrust(args.folder)
    tables = {
        "agreement": agreement_table(statements),
        "pairs": pairs_table(statements),
        "gpt35": gpt35_table(args.folder),
        "reading": reading_table(args.folder),
        "gaps": gaps_table(args.folder),
        "mitigation": mitigation_table(args.folder),
        "words": words_table(args.folder),
        "whom": whom_table(args.folder),
        "representation": representation_table(args.output),
        "smollm": smollm_table(args.output),
    }
    args.output.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        save_table(args.output / f"{name}.csv", list(rows))


def save_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """One table, numbers with six digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def read_table(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of a published table."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown(cell: str, digits: int) -> str:
    """A number as the page has it; a dash where there is none."""
    if not math.isfinite(float(cell)):
        return "–"
    return drop_zero(f"{float(cell):.{digits}f}").replace("-", "−")


def ranged(row: dict[str, str], digits: int, ends: str = "") -> str:
    """An interval as the page has it."""
    low, high = (shown(row[f"{end}{ends}"], digits) for end in ("low", "high"))
    return f"[{low}, {high}]"


def shown_p(cell: str) -> str:
    """A p-value with three decimals."""
    return "< .001" if float(cell) < SMALLEST else shown(cell, 3)


def print_table(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print(f"\n{title}\n")
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


SMALLEST = 0.0005
DIGITS = {"length": 1}
"""Decimals of a score; three of all others."""


def print_gaps(title: str, columns: Sequence[str], rows: Iterable[dict[str, str]]) -> None:
    """Print differences beside what a mean over texts gives."""
    print_table(
        title,
        (*columns, "difference", "95%", "p", "outcome", "95% over texts", "p over texts"),
        (
            (
                *(row[column] for column in columns),
                shown(row["value"], digits),
                ranged(row, digits),
                shown_p(row["p"]),
                row["outcome"],
                ranged(row, digits, "_texts"),
                shown_p(row["p_texts"]),
            )
            for row in rows
            for digits in [DIGITS.get(row["score"], 3)]
        ),
    )


def tables(args: argparse.Namespace) -> None:
    """Print the tables as the page has them."""
    print_table(
        "agreement",
        (
            "model",
            "system prompt",
            "agreement",
            "95% over topics",
            "± topics",
            "± statements",
            "± texts",
            "ratio",
            "ICC",
            "neither",
        ),
        (
            (
                row["model"],
                row["system"],
                shown(row["value"], 3),
                ranged(row, 3),
                *(shown(row[f"half_{unit}"], 4) for unit in ("topics", "statements", "texts")),
                shown(str(float(row["half_topics"]) / float(row["half_texts"])), 1),
                shown(row["icc"], 2),
                shown(row["neither"], 3),
            )
            for row in read_table(args.output, "agreement")
        ),
    )
    pairs = read_table(args.output, "pairs")
    differ = [row for row in pairs if row["outcome"] == "differs"]
    by_texts = [row for row in pairs if float(row["p_texts"]) < LEVEL]
    print(f"\nOf {len(pairs)} pairs {len(differ)} differ; over texts it would be {len(by_texts)}.")
    print_table(
        "reading",
        ("system prompt", "share", "n", "value", "95%"),
        (
            (row["system"], row["share"], row["n"], shown(row["value"], 3), ranged(row, 3))
            for row in read_table(args.output, "reading")
        ),
    )
    print_gaps("gpt35", ("system", "score", "contrast"), read_table(args.output, "gpt35"))
    gaps = read_table(args.output, "gaps")
    by_texts = [row for row in gaps if float(row["p_texts"]) < LEVEL]
    alone = [row for row in gaps if not float(row["low"]) <= 0 <= float(row["high"])]
    found = [row for row in gaps if row["outcome"] == "found"]
    print(
        f"\nOf {len(gaps)} differences {len(by_texts)} are significant over texts, {len(alone)} "
        f"intervals exclude 0 by themselves, and {len(found)} is found."
    )
    chosen = [row for row in gaps if row in by_texts or row["contrast"] == "female - male"]
    print_gaps("gaps", ("texts", "score", "contrast"), chosen)
    print_gaps("mitigation", ("texts", "score", "of"), read_table(args.output, "mitigation"))
    print_table(
        "representation",
        ("share", "n", "value", "95%", "p", "outcome", "95% over texts"),
        (
            (
                row["share"],
                row["n"],
                shown(row["value"], 3),
                ranged(row, 3),
                shown_p(row["p"]) if row["p"] else "",
                row["outcome"],
                ranged(row, 3, "_texts") if row["low_texts"] else "",
            )
            for row in read_table(args.output, "representation")
        ),
    )
    print_gaps("smollm", ("prompts", "score", "contrast"), read_table(args.output, "smollm"))


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for command in (convert, measure, tables):
        own = commands.add_parser(command.__name__, help=command.__doc__)
        own.set_defaults(command=command)
        if command is not tables:
            own.add_argument("folder", type=Path)
        default = None if command is convert else RESULTS
        own.add_argument("-o", "--output", type=Path, default=default, required=default is None)
    args = parser.parse_args()
    args.command(args)


if __name__ == "__main__":
    main()
