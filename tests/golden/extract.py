"""Flat numbers from the JSON documents of the commands: one function per kind of result.

This is the only file of the golden tests that knows the shape of the JSON. When that shape
changes, rewrite these functions so that they yield the same logical names, and leave the stored
numbers as they are.

A function takes the document of one command and yields `(logical name, numbers)`; the numbers are
a mapping with some of `value`, `low`, `high`, `p`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Numbers = dict[str, float | str]
Row = tuple[str, Numbers]
Document = Mapping[str, Any]


def numbers(value: Any = None, low: Any = None, high: Any = None, p: Any = None) -> Numbers:
    """Those of the four that exist."""
    given = {"value": value, "low": low, "high": high, "p": p}
    return {
        name: number
        for name, number in given.items()
        if number is not None and not (isinstance(number, float) and math.isnan(number))
    }


def estimate(data: Mapping[str, Any], p: Any = None) -> Numbers:
    """Value, interval and p of anything that calls them so."""
    p_value = data.get("p_value") if p is None else p
    return numbers(data["value"], data.get("low"), data.get("high"), p_value)


def posterior(data: Mapping[str, Any]) -> Numbers:
    """Mean, interval and probability below zero of a posterior, or of its change."""
    estimate = data.get("change", data)
    p = data.get("details", data).get("p_below_zero")
    return numbers(
        estimate.get("value", estimate.get("mean")), estimate["low"], estimate["high"], p
    )


# vectors


def _measurement(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    details = data["details"]
    yield name, estimate(data)
    if "null_mean" in details:
        null = numbers(details["null_mean"], details["null_low"], details["null_high"])
        yield f"{name}/null", null
    if details.get("p_attributes") is not None:
        yield f"{name}/attributes", numbers(p=details["p_attributes"])


def measurements(document: Document) -> Iterator[Row]:
    """`vectors measure`, `null`, `analogies`, and `text annotate read`."""
    for data in document["measurements"]:
        yield from _measurement(data, f"{data['metric']}/{data['query']}")


def dimension(document: Document) -> Iterator[Row]:
    """`vectors null --dimension`: the slope and the spread at each dimension."""
    yield from measurements(document)
    items = document["measurements"][0]["items"]
    columns = (items[name] for name in ("dimension", "sd_normal", "sd_uniform"))
    for size, normal, uniform in zip(*columns, strict=True):
        yield f"dimension_spread/{size}/normal", numbers(normal)
        yield f"dimension_spread/{size}/uniform", numbers(uniform)


def distances(document: Document) -> Iterator[Row]:
    """`vectors distances`: the contrast, and the mean and median of each connection."""
    yield from measurements(document)
    for name, data in document["connections"].items():
        yield f"connection/{name}/mean", numbers(data["mean"])
        yield f"connection/{name}/median", numbers(data["median"])
        yield f"connection/{name}/rows", numbers(data["size"])


def _comparison(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    for part in ("before", "after", "change"):
        yield f"{name}/{part}", estimate(data[part])


def debias(document: Document) -> Iterator[Row]:
    """`vectors debias`: each measure before and after, hidden bias, and the utility left."""
    for data in document["comparisons"]:
        yield from _comparison(data, f"{data['metric']}/{data['query']}")
    for data in document["measurements"]:
        yield f"{data['metric']}/{data['query']}", estimate(data)


# masked models


def _parts(data: Mapping[str, Any], by: str) -> list[Mapping[str, Any]]:
    """The parts of a measurement or comparison by `by`."""
    return [part for part in data["parts"] if part.get("before", part)["by"] == by]


def _pronoun_rule(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    yield f"{name}/mean", estimate(data)
    for part in _parts(data, "subset"):
        yield f"{name}/mean_of_all", estimate(part)
    for part in _parts(data, "verdict"):
        yield f"{name}/{part['query']}/share", estimate(part)
        for mean in _parts(part, "component"):
            if mean["value"] is not None:
                yield f"{name}/{part['query']}/mean", estimate(mean)


def pronouns(document: Document) -> Iterator[Row]:
    """`masked score`."""
    for data in document["measurements"]:
        model = data["subject"]
        [top] = _parts(data, "vocabulary")
        yield from _pronoun_rule(top, f"{model}/top")
        yield from _pronoun_rule(data, f"{model}/full")
        for by in ("slot", "pronoun"):
            for part in _parts(data, by):
                name = f"{model}/by_{by}/{part['query']}"
                yield f"{name}/top", estimate(*_parts(part, "vocabulary"))
                yield f"{name}/full", estimate(part)
    for data in document.get("comparisons", ()):
        name = f"{data['after']['subject']} - {data['before']['subject']}"
        yield f"{name}/full", estimate(data["change"], data["p_value"])
        [top] = data["parts"]
        yield f"{name}/top", estimate(top["change"])
        yield f"{name}/holm", numbers(p=data["p_corrected"])


def association(document: Document) -> Iterator[Row]:
    """`masked associate`."""
    for data in document["measurements"]:
        model = data["subject"]
        yield f"{model}/overall", estimate(data)
        for by, name in (("contrast", "stereotype"), ("correlation", "women")):
            for part in _parts(data, by):
                yield f"{model}/{name}", estimate(part)
        for part in _parts(data, "group"):
            yield f"{model}/group/{part['query']}", estimate(part)
        for part in _parts(data, "profession"):
            name = f"{model}/profession/{part['query']}"
            yield name, estimate(part)
            yield f"{name}/pooled", estimate(*part["parts"])
        for part in _parts(data, "template"):
            name = f"{model}/template/{part['query']}"
            yield name, estimate(part)
            yield f"{name}/without", numbers(part["details"]["without"])
            yield f"{name}/agreement", numbers(part["details"]["agreement"])
        for name, value in data["details"]["sensitivity"].items():
            yield f"{model}/sensitivity/{name}", numbers(value)
    for data in document.get("comparisons", ()):
        name = f"{data['after']['subject']} - {data['before']['subject']}"
        yield f"{name}/overall", estimate(data["change"], data["p_value"])
        for part in data["parts"]:
            yield f"{name}/stereotype", estimate(part["change"], part["p_value"])


def _pairs(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    result = data.get("change", data)
    yield f"{name}/share", estimate(result, data["p_value"])
    [difference] = _parts(data, "component")
    yield f"{name}/difference", estimate(difference.get("change", difference))
    if data["p_corrected"] is not None:
        yield f"{name}/holm", numbers(p=data["p_corrected"])


def crows(document: Document) -> Iterator[Row]:
    """`masked crows`."""
    for data in document["measurements"]:
        model = data["subject"]
        yield from _pairs(data, f"{model}/overall")
        for part in _parts(data, "unit"):
            yield f"{model}/overall/by_writer", estimate(part)
        for by in ("direction", "category"):
            for part in _parts(data, by):
                yield from _pairs(part, f"{model}/{by}/{part['query']}")
    for data in document.get("comparisons", ()):
        name = f"{data['after']['subject']} - {data['before']['subject']}"
        yield from _pairs(data, f"{name}/overall")
        for part in _parts(data, "category"):
            yield from _pairs(part, f"{name}/category/{part['query']}")


def _phrase_agreement(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    for part in _parts(data, "phrases"):
        yield f"{name}/{part['query']}/pearson", estimate(part)
        yield f"{name}/{part['query']}/spearman", estimate(*part["parts"])
        for kind, value in part["details"]["reliability"].items():
            yield f"{name}/{part['query']}/reliability/{kind}", numbers(value)


def phrases(document: Document) -> Iterator[Row]:
    """`masked phrases`."""
    for data in document["measurements"]:
        source = data["subject"]
        [raw] = _parts(data, "embedding")
        if data["metric"] == "phrases":
            yield from _measurement(raw, f"{source}/phrase-weat/{data['query']}")
            yield from _measurement(data, f"{source}/phrase-weat-centred/{data['query']}")
        else:
            model = data["details"]["pronouns_of"]
            yield from _phrase_agreement(raw, f"correlation/{source} with {model}")
            yield from _phrase_agreement(data, f"correlation/{source} centred with {model}")
    for data in document["comparisons"]:
        name = f"{data['after']['subject']} - {data['before']['subject']}"
        [raw] = data["parts"]
        yield f"{name}/phrase-weat/{data['query']}/change", estimate(raw["change"])
        yield f"{name}/phrase-weat-centred/{data['query']}/change", estimate(data["change"])


def generation(document: Document) -> Iterator[Row]:
    """`masked generate`."""
    for name in ("read", "searches", "generated", "controls"):
        yield f"count/{name}", numbers(document[name])
    kinds = {"seeds": "seed", "found": "search", "random": "control"}
    for data in document["measurements"]:
        if data["metric"] == "continuation":  # not measured in 0.1
            continue
        for part in _parts(data, "sentences"):
            prefix = f"{data['subject']}/{data['query']}/{kinds[part['query']]}"
            yield f"{prefix}/distance", estimate(part)
            for component in part["parts"]:
                yield f"{prefix}/{component['query']}", estimate(component)
    for data in document["comparisons"]:
        before = data["before"]
        if data["metric"] == "continuation":
            continue
        kind = kinds[data["query"]]
        prefix = f"{before['subject']}/{data['details']['toward']}/against_{kind}"
        yield f"{prefix}/distance", estimate(data["change"], data["p_value"])
        [push] = data["parts"]
        yield f"{prefix}/push", estimate(push["change"], push["p_value"])


def finetuning(document: Document) -> Iterator[Row]:
    """`masked finetune`: each measure before and after, the changes, and the curve."""
    for name in ("training", "evaluation", "held_out", "sentences", "plain_sentences", "pairs"):
        yield f"count/{name}", numbers(document["data"][name])
    for name in ("steps", "tokens", "documents"):
        yield f"count/{name}", numbers(document["training"][name])
    new = "built-in sentences"  # not measured in 0.1
    for prefix, key in (("", "changes"), ("control/", "control")):
        for data in document[key]:
            if data["query"].endswith(new):
                continue
            for part in ("before", "after", "change"):
                yield f"{prefix}{data['query']}/{part}", estimate(data[part])
            distance = data["details"]["distance"]
            if distance:
                yield f"{prefix}{data['query']}/distance", estimate(distance)
    for data in document["against_control"]:
        if data["query"].endswith(new):
            continue
        yield f"against control/{data['query']}", estimate(data["change"])
    for prefix, key in (("", "curve"), ("control/", "control_curve")):
        for point in document[key]:
            yield f"{prefix}loss/{point['step']}", numbers(point["evaluation"])


# text


def filtering(document: Document) -> Iterator[Row]:
    """`text filter`: the counts of each step and each reason."""
    for name in ("read", "one_pronoun", "no_other_indicator", "linked"):
        yield f"step/{name}", numbers(document[name])
    yield "step/kept", numbers(document["accepted"])
    for name, count in document["reasons"].items():
        yield f"reason/{name}", numbers(count)


def odds(document: Document) -> Iterator[Row]:
    """`text odds`."""
    (measurement,) = document["measurements"]
    for name, count in measurement["details"]["counts"].items():
        yield f"count/{name}", numbers(count)
    for part in measurement["parts"]:
        name, details = f"class/{part['query']}", part["details"]
        yield name, estimate(part)
        exact = numbers(None, details["exact_low"], details["exact_high"], part["p_corrected"])
        yield f"{name}/exact", exact


def annotation(document: Document) -> Iterator[Row]:
    """`text annotate read`."""
    (measurement,) = document["measurements"]
    yield f"accuracy/{measurement['query']}", estimate(measurement)
    yield from measurements({"measurements": measurement["parts"]})
    for name, count in measurement["details"]["counts"].items():
        yield f"count/{name}", numbers(count)


# posterior


def _contrasts(document: Document, model: str) -> dict[str, Mapping[str, Any]]:
    return {
        data["query"]: data
        for data in document["measurements"]
        if data["metric"] == "posterior_contrast" and data["details"]["model"] == model
    }


def fits(document: Document) -> Iterator[Row]:
    """`posterior fit`."""
    for name, data in document["models"].items():
        for criterion in ("waic", "loo"):
            if data.get(criterion) is not None:
                yield f"{name}/{criterion}", numbers(data[criterion])
    for data in document["measurements"]:
        if data["metric"] == "posterior_level":
            level = numbers(data["value"], data["low"], data["high"])
            yield f"{data['details']['model']}/level/{data['query']}", level
    for key, model in (("contrasts", "crossed"), ("naive_contrasts", "coefficients")):
        for name, data in _contrasts(document, model).items():
            yield f"{key}/{name}", posterior(data)
    delta = _contrasts(document, "crossed").get("associated-different", {"parts": ()})
    for key, by in (("words", "word"), ("classes", "class")):
        for data in delta["parts"]:
            if data["by"] == by:
                yield f"{key}/{data['query']}/associated-different", posterior(data)
    for name, checks in document.get("checks", {}).items():
        for check in checks:
            values = numbers(check["mean"], check["low"], check["high"], check["p"])
            yield f"check/{name}/{check['statistic']}", values
    for prior in document.get("sensitivity", ()):
        for data in prior["measurements"]:
            yield f"prior/{prior['prior']}/{data['query']}", posterior(data)


def contrasts(document: Document) -> Iterator[Row]:
    """`posterior fit --sampler nuts`: the contrasts alone."""
    for name, data in _contrasts(document, "crossed").items():
        yield f"contrasts/{name}", posterior(data)


def paired_fits(document: Document) -> Iterator[Row]:
    """`posterior compare`."""
    for data in document["comparisons"]:
        key = "levels" if data["metric"] == "posterior_level" else "contrasts"
        name = data["query"]
        yield f"{key}/{name}/before", posterior(data["before"])
        yield f"{key}/{name}/after", posterior(data["after"])
        yield f"{key}/{name}/change", posterior(data)
        for part in data["parts"]:
            if part["before"]["by"] == "word":
                yield f"words/{part['query']}/{name}", posterior(part)


def plan(document: Document) -> Iterator[Row]:
    """`posterior plan`."""
    yield "needed", numbers(document["needed"], document["low"], document["high"])
    yield "approximate", numbers(document["approximate"])
    yield "power_now", numbers(document["power_available"]["value"])
    for data in document["curve"]:
        name = f"power/{data['details']['attributes']}"
        yield name, estimate(data)
        yield f"{name}/approximate", numbers(data["details"]["approximate"])


# few-shot


def _parts_by_name(data: Mapping[str, Any], by: str) -> dict[str, Mapping[str, Any]]:
    return {part["query"]: part for part in data["parts"] if part["by"] == by}


def _score(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    yield name, numbers(**_ends(data.get("change", data)), p=data["p_value"])
    details = data["details"]
    yield f"{name}/over_episodes", numbers(None, details["naive_low"], details["naive_high"])


def _ends(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("value", "low", "high")}


def _overall(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    scores = (part for part in data["parts"] if part.get("by", "score") == "score")
    return {row["metric"]: row for row in (data, *scores)}


def _bias(data: Mapping[str, Any], name: str) -> Iterator[Row]:
    for measure, part in _parts_by_name(data, "measure").items():
        details = part["details"]
        yield f"{name}/{measure}", estimate(part)
        size = {
            end: details[key] if "size" in details else part[end]
            for end, key in (("value", "size"), ("low", "size_low"), ("high", "size_high"))
        }
        yield f"{name}/{measure}/size", numbers(**size, p=details["null_p"])
        yield f"{name}/{measure}/null", numbers(details["null_mean"], high=details["null_high"])
        yield f"{name}/{measure}/corrected", numbers(details["corrected"])


def fewshot(document: Document) -> Iterator[Row]:
    """`fewshot run`."""
    accuracy, *biases, baseline = document["measurements"]
    [above] = document["comparisons"]
    for prefix, data in (("", accuracy), ("baseline/", baseline), ("above baseline/", above)):
        for metric, score in _overall(data).items():
            yield from _score(score, f"{prefix}{metric}")
    f1 = _overall(accuracy)["f1"]
    for metric, data in (("accuracy", accuracy), ("f1", f1)):
        for name, part in _parts_by_name(data, "class").items():
            yield f"class/{name}/{metric}", estimate(part)
        for name, part in _parts_by_name(data, "gender").items():
            yield f"gender/{name}{'_f1' if metric == 'f1' else ''}", estimate(part)
    for name, part in _parts_by_name(accuracy, "component").items():
        # it is called `split beyond its classes` in evenhand/1
        yield f"variance/{name.replace('without', 'beyond')}", estimate(part)
    for data in biases:
        yield from _bias(data, "bias")
        for name, part in _parts_by_name(data, "class").items():
            for gender, own in _parts_by_name(part, "gender").items():
                yield f"association/{name}/{gender}", estimate(own)
    for split, points in document["curves"].items():
        for point in points:
            yield f"curve/{split}/{point['episodes']:g}", numbers(point["validation_loss"])


def _change(data: Mapping[str, Any]) -> Numbers:
    return numbers(data["change"], data["low"], data["high"], data["p_value"])


def fewshot_bias(document: Document) -> Iterator[Row]:
    """`fewshot bias`: the bias of each run, and the paired changes against the first."""
    for data in document["measurements"]:
        name = data["subject"]
        if data["metric"] == "accuracy":
            yield f"{name}/accuracy", estimate(data)
        else:
            yield from _bias(data, f"{name}/bias")
    for data in document["comparisons"]:
        name = f"change/{data['after']['subject']}"
        if data["metric"] == "accuracy":
            yield f"{name}/accuracy", numbers(**_ends(data["change"]), p=data["p_value"])
            continue
        for part in data["parts"]:
            values = numbers(**_ends(part["change"]), p=part["p_value"])
            yield f"{name}/{part['query']}", values


# grids


def _setting(data: Mapping[str, Any], *names: str) -> str:
    return "/".join(str(data[name]) for name in names if name in data)


FEWSHOT_MEASURES = ("accuracy", "association", "epsilon", "skew", "stereotype")


def fewshot_grid(document: Document) -> Iterator[Row]:
    """`grid report` of a few-shot grid."""
    axes = ("network", "ways", "shots", "mitigation")
    for data in document["results"]:
        name = f"result/{_setting(data, *axes)}"
        yield f"{name}/baseline", estimate(data["baseline"])
        for measure in FEWSHOT_MEASURES:
            yield f"{name}/{measure}", estimate(data[measure])
    for data in document["best"]:
        name = f"best/{_setting(data, *axes)}"
        yield f"{name}/accuracy", estimate(data["accuracy"])
        if data.get("ahead"):
            yield f"{name}/ahead", estimate(data["ahead"])
    for data in document["effects"]:
        for measure in FEWSHOT_MEASURES:
            yield f"effect/{_setting(data, *axes)}/{measure}", _change(data[measure])
    for data in document["networks"]:
        for measure in FEWSHOT_MEASURES:
            name = f"network/{_setting(data, 'network', 'mitigation')}/{measure}"
            yield name, estimate(data[measure])
            difference = data[measure]["difference"]
            yield f"{name}/difference from the others", estimate(difference)
    for data in document["mitigations"]:
        for measure in FEWSHOT_MEASURES:
            name = f"mitigation/{_setting(data, 'network', 'mitigation')}/{measure}"
            yield name, _change(data[measure])


MODEL_CELLS = (
    (r"pronouns [^:]+", "score of decided"),
    (r"pronouns [^:]+: subset all sentences", "score"),
    (r"pronouns [^:]+: vocabulary (top \d+)", r"score of decided, \1"),
    (r"pronouns [^:]+: pronouns_share, verdict (\w+)", r"share \1"),
    (r"professions [^:]+", "association"),
    (r"professions [^:]+: group (\w+)", r"association, \1 professions"),
    (r"professions [^:]+: contrast .+", "stereotype"),
    (r"phrases (\w+)", r"\1 by MODEL, centred"),
    (r"phrases (\w+): embedding raw", r"\1 by MODEL"),
)
"""The figures of cells of models, and their logical names."""


def cells(document: Document) -> Iterator[Row]:
    """`grid report` of any other grid: the numbers of each cell."""
    for data in document["results"]:
        axes = "/".join(
            "+".join(value) if isinstance(value, list) else str(value)
            for value in data["axes"].values()
        )
        if document["task"] == "masked":
            rows = model_cell(data["figures"], str(data["axes"]["model"]))
            yield from ((f"{axes}/{name}", values) for name, values in rows)
            continue
        for figure, value in data["figures"].items():
            name = figure.replace("accepted", "kept")
            if isinstance(value, Mapping):
                yield f"{axes}/{name}", estimate(_ends(value))
            elif name != "bytes":
                yield f"{axes}/{name}", numbers(value)


def model_cell(figures: Mapping[str, Any], model: str) -> Iterator[Row]:
    for name, value in figures.items():
        for pattern, logical in MODEL_CELLS:
            if re.fullmatch(pattern, name):
                translated = re.sub(pattern, logical, name).replace("MODEL", model)
                yield translated, estimate(_ends(value))
                if translated == "score of decided":
                    yield "p", numbers(p=value["p_value"])
                if translated == "score":
                    yield "sentences", numbers(value["n"])


def _ends(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: figure[name] for name in ("value", "low", "high")}


# audit


RECORDED = {
    "odds": "odds_ratio",
    "pronouns": "pronoun_score",
    "professions": "profession_association",
    "phrases": "phrase-weat",
}
"""The names of metrics in version 0.1, which the numbers were recorded with."""


STAGES = {
    "odds": "odds-data-odds-ratios",
    "weat": "weat-weat-1-to-10",
    "wefat": "wefat-wefat",
    "analogies": "analogies-analogies",
    "analogy_accuracy": "analogies-analogies",
    "pronouns": "pronouns-model-pronouns",
    "professions": "profession-model-professions",
    "phrases": "phrases-model-phrases",
}
"""The names of stages in version 0.1, by the kinds of today's."""


def _audited(measurements: Iterable[Document]) -> Iterator[Document]:
    """The measurements of a stage with the names of version 0.1, and the parts that it had."""
    for data in measurements:
        parts = [part for part in data["parts"] if part["by"] == "class"]
        if data["metric"] == "professions":
            yield {**data, "query": "male - female"}
            for part in data["parts"]:
                if part["by"] == "group":
                    yield {**part, "query": f"{part['query']} professions"}
                elif part["by"] == "contrast":
                    yield part
        elif data["metric"] == "phrases":
            [raw] = _parts(data, "embedding")
            yield {**raw, "query": data["query"]}
            yield {**data, "metric": "phrase-weat-centred"}
        elif data["details"].get("role") in ("performance", "bias"):
            run = data["details"]["run"]
            if data["metric"] == "accuracy":
                yield {**data, "metric": "fewshot_accuracy", "query": run}
            for part in _parts(data, "measure"):
                yield {**part, "metric": f"fewshot_{part['query']}", "query": run}
        elif data["metric"] != "phrases_pronouns" and "role" not in data["details"]:
            yield from parts if data["metric"] == "odds" and parts else [data]


def audit(document: Document) -> Iterator[Row]:
    """`results.json` of an audit: measurements, mitigation, posterior, and the verdicts."""
    names: set[str] = set()
    for stage in document["stages"]:
        of = STAGES.get(stage["kind"], stage["name"])
        if stage["kind"] == "mitigation":
            for name, values in debias(stage):
                yield f"{of}/{name}", values
            continue
        if stage["kind"] == "posterior":
            for data in stage["measurements"]:
                if data["details"].get("model") == "crossed":
                    yield f"{of}/contrasts/{data['query']}", posterior(data)
            continue
        for data in _audited(stage["measurements"]):
            name = f"{of}/{RECORDED.get(data['metric'], data['metric'])}/{data['query']}"
            while name in names:
                name += " again"
            names.add(name)
            yield name, estimate(data)
    for data in document["verdicts"]:
        yield f"verdict/{data['subject']}/{data['topic']}", {"value": data["verdict"]}


EXTRACTORS: dict[str, Callable[[Document], Iterable[Row]]] = {
    function.__name__: function
    for function in (
        measurements,
        dimension,
        distances,
        debias,
        pronouns,
        association,
        crows,
        phrases,
        generation,
        finetuning,
        filtering,
        odds,
        annotation,
        fits,
        contrasts,
        paired_fits,
        plan,
        fewshot,
        fewshot_bias,
        fewshot_grid,
        cells,
        audit,
    )
}


def extract(kind: str, document: Document) -> dict[str, Numbers]:
    """The numbers of a document under their logical names."""
    rows: dict[str, Numbers] = {}
    for name, values in EXTRACTORS[kind](document):
        if name in rows:
            raise AssertionError(f"{kind}: two results are called {name}")
        if values:
            rows[name] = values
    return rows
