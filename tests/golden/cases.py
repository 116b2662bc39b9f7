"""The golden cases: measuring commands with fixed seeds, and the small inputs that they read.

The logical names of a case's numbers begin with the case's name. Nothing here depends on the shape
of the JSON: that is `extract.py`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import shlex
import shutil
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import extract
import numpy as np
import yaml
from safetensors.numpy import load_file, save_file

import evenhand
from evenhand.cli import run

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Step:
    """One command; with a `kind` its JSON is read by that extractor."""

    command: str
    kind: str | None = None
    name: str = ""


@dataclass(frozen=True)
class Case:
    """Commands run one after another in an empty folder with the inputs below.

    `tolerance` is a key of TOLERANCES in test_golden.py. `needs` is a module of an extra.
    """

    name: str
    steps: tuple[Step, ...]
    tolerance: str
    slow: bool = False
    needs: str | None = None

    @property
    def stored(self) -> str:
        """The file of the stored numbers: the first part of the name, slow cases separately."""
        return self.name.split("/")[0] + ("-slow" if self.slow else "")

    @property
    def shared(self) -> bool:
        """Whether a command reads the data beside the project."""
        return any("SHARED" in step.command or "shared_" in step.command for step in self.steps)


def case(
    name: str, tolerance: str, *steps: str | Step, slow: bool = False, needs: str = ""
) -> Case:
    """A case of several steps, or of `"KIND: COMMAND"`."""
    read = []
    for step in steps:
        if isinstance(step, str):
            kind, command = step.split(": ", 1)
            step = Step(command, kind)
        read.append(step)
    return Case(name, tuple(read), tolerance, slow, needs or None)


CPU = "--device cpu"
DEFAULT_FEWSHOT = (
    f"lab fewshot run --ways 2 --shots 2 --queries 2 --episodes 16/6/24 --batch 4 --workers 1 {CPU}"
    " --cache cache"
)
FEWSHOT = f"{DEFAULT_FEWSHOT} --leaning share --mitigate all --no-neutral"
SIMULATED = "--data simulated:per_class=8,leak=1"
POSTERIOR = "--draws 400 --prob 0.89"

CASES = (
    # word vectors
    case(
        "vectors/measure",
        "arithmetic",
        "measurements: measure glove --option null=100 --option permutations=10000",
    ),
    case(
        "vectors/extended",
        "arithmetic",
        "measurements: measure glove --topic gender --option extended=yes --option null=0"
        " --option permutations=2000",
    ),
    case(
        "vectors/robust",
        "arithmetic",
        "measurements: measure weat glove --weat 6 --weat 7 --robust --null 0",
    ),
    case(
        "vectors/query",
        "arithmetic",
        "measurements: measure glove --query query.json --option null=50"
        " --option permutations=2000 --seed 3 --prob 0.9",
    ),
    case(
        "vectors/null",
        "arithmetic",
        "measurements: lab vectors null glove --topic gender --null 50",
    ),
    case("vectors/dimension", "arithmetic", "dimension: lab vectors null glove --by-dimension"),
    case(
        "vectors/distances/gender",
        "arithmetic",
        "distances: lab vectors distances glove --topic gender",
    ),
    case(
        "vectors/distances/religion",
        "arithmetic",
        "distances: lab vectors distances glove --topic religion --extended",
    ),
    case("vectors/analogies", "arithmetic", "measurements: lab vectors analogies glove"),
    case("vectors/debias/hard", "debias", "debias: debias glove"),
    case(
        "vectors/debias/soft",
        "debias",
        "debias: debias glove --topic religion --method soft",
        slow=True,
    ),
    case("vectors/debias/inlp", "debias", "debias: debias glove --method inlp", slow=True),
    # masked language models
    case(
        "masked/pronouns",
        "model",
        f"pronouns: measure pronouns mini second --data filtered.jsonl {CPU}",
    ),
    case(
        "masked/pronouns options",
        "model",
        "pronouns: measure pronouns mini --data filtered.jsonl --top-k 50 --gender-words pronouns"
        f" --delta 0.1 --threshold 0.1 --seed 5 --prob 0.9 {CPU}",
    ),
    case(
        "masked/pronouns filter",
        "model",
        f"pronouns: measure pronouns mini --data text.txt --filter --keep-someone {CPU}",
        slow=True,
    ),
    case(
        "masked/association",
        "model",
        f"association: measure professions mini second {CPU}",
        slow=True,
    ),
    case(
        "masked/association own",
        "model",
        "association: measure professions mini second --persons he/she"
        " --persons 'my brother/my sister' --professions professions.csv --templates templates.txt"
        f" {CPU}",
    ),
    case(
        "masked/crows/shared",
        "model",
        f"crows: measure crows mini second --data pairs.csv {CPU}",
    ),
    case(
        "masked/crows/unmasked",
        "model",
        f"crows: measure crows mini second --data pairs.csv --method unmasked {CPU}",
    ),
    case(
        "masked/phrases", "model", f"phrases: measure phrases mini --vectors glove {CPU}", slow=True
    ),
    case(
        "masked/phrases two models",
        "model",
        f"phrases: measure phrases mini second --set force {CPU}",
    ),
    case(
        "masked/generation",
        "search",
        f"generation: lab generate seeds.txt --toward both --judge second --max-edits 1"
        f" --tried 12 {CPU}",
    ),
    case(
        "masked/generation two edits",
        "search",
        f"generation: lab generate filtered.jsonl --limit 12 --judge second {CPU}",
        slow=True,
    ),
    case(
        "masked/finetuning",
        "training",
        "finetuning: finetune text.txt -o even --max-tokens 1500 --max-length 64"
        f" --evaluations 2 {CPU}",
    ),
    case(
        "masked/finetuning control",
        "training",
        "finetuning: finetune text.txt -o even --rewrite swap --control-training"
        f" --crows pairs.csv --max-tokens 1000 --max-length 64 --evaluations 2 --seed 1 {CPU}",
        slow=True,
    ),
    # text
    case("text/filter", "arithmetic", "filtering: filter text.txt mixed.txt"),
    case(
        "text/filter options",
        "arithmetic",
        "filtering: filter mixed.txt --split-sentences --keep-someone --keep-names",
    ),
    case("text/odds", "arithmetic", "odds: odds jobs.csv --label job --gender sex"),
    case(
        "text/odds of pronouns",
        "arithmetic",
        "odds: odds jobs.csv --label job --text text --prob 0.9",
    ),
    case("text/annotation", "arithmetic", "annotation: lab annotate read ann.csv ben.csv cleo.csv"),
    # posteriors
    case(
        "posterior/fit",
        "posterior",
        Step("lab vectors distances glove --topic religion -o glove.csv"),
        f"fits: lab posterior fit glove.csv {POSTERIOR}",
    ),
    case(
        "posterior/fit checked",
        "posterior",
        Step("lab vectors distances glove --topic gender -o glove.csv"),
        f"fits: lab posterior fit glove.csv {POSTERIOR} --checks --sensitivity",
        slow=True,
    ),
    case(
        "posterior/fit student",
        "posterior",
        f"fits: lab posterior fit distances.csv --family crossed --errors student {POSTERIOR}",
    ),
    case(
        "posterior/fit nuts",
        "posterior",
        "contrasts: lab posterior fit distances.csv --family crossed --sampler nuts --draws 800"
        " --prob 0.89",
        slow=True,
        needs="numpyro",
    ),
    case(
        "posterior/compare",
        "posterior",
        f"paired_fits: lab posterior compare distances.csv after.csv {POSTERIOR}",
    ),
    case(
        "posterior/plan",
        "posterior",
        "plan: plan religion --simulations 20 --prob 0.89 --seed 1",
    ),
    # few-shot classification
    case(
        "fewshot/paired",
        "training",
        Step(f"{FEWSHOT} {SIMULATED} --out base", "fewshot", "none"),
        Step(
            f"{FEWSHOT} {SIMULATED} --out neutral --mitigation neutralize", "fewshot", "neutralize"
        ),
        Step("lab fewshot bias base neutral --permutations 200", "fewshot_bias", "paired"),
    ),
    case(
        "fewshot/odds",
        "training",
        Step(
            f"{FEWSHOT} {SIMULATED} --leaning point --mitigation neutralize --mitigate train"
            " --out base",
            "fewshot",
        ),
    ),
    case(
        "fewshot/default leaning",
        "training",
        Step(f"{DEFAULT_FEWSHOT} --data simulated:per_class=16,leak=1 --out base", "fewshot"),
        slow=True,
    ),
    case(
        "fewshot/three mitigations",
        "training",
        Step(
            f"{FEWSHOT} --data simulated:per_class=14,leak=1 --seeds 2 --splits 2 --out base",
            "fewshot",
            "none",
        ),
        Step(
            f"{FEWSHOT} --data simulated:per_class=14,leak=1 --seeds 2 --splits 2 --out augmented"
            " --mitigation augment",
            "fewshot",
            "augment",
        ),
        Step(
            f"{FEWSHOT} --data simulated:per_class=14,leak=1 --seeds 2 --splits 2 --out both"
            " --mitigation neutralize+augment",
            "fewshot",
            "neutralize+augment",
        ),
        Step("lab fewshot bias base augmented both", "fewshot_bias", "paired"),
        slow=True,
    ),
    case(
        "fewshot/finetuned encoder",
        "training",
        Step(f"{FEWSHOT} {SIMULATED} --network matching-cosine --finetune --out tuned", "fewshot"),
        slow=True,
    ),
    # grids
    case(
        "grid/vectors",
        "debias",
        Step("lab grid run vectors.yaml --out out --workers 1 --device cpu"),
        "cells: lab grid report out",
        slow=True,
    ),
    case(
        "grid/masked",
        "model",
        Step("lab grid run masked.yaml --out out --workers 1 --device cpu"),
        "cells: lab grid report out",
        slow=True,
    ),
    case(
        "grid/text",
        "arithmetic",
        Step("lab grid run text.yaml --out out --workers 1 --device cpu"),
        "cells: lab grid report out",
    ),
    case(
        "grid/fewshot",
        "training",
        Step("lab grid run fewshot.yaml --out out --workers 1 --device cpu"),
        "fewshot_grid: lab grid report out",
        slow=True,
    ),
    # an audit: the numbers are in its results.json
    case(
        "audit/quick",
        "training",
        Step("audit --quick --out out --workers 1", "audit out/results.json"),
        slow=True,
    ),
    # the data beside the project
    case(
        "shared/odds",
        "arithmetic",
        "odds: odds SHARED/bios/wikibios.csv.gz --label occupation --gender gender",
    ),
    case(
        "shared/odds of pronouns",
        "arithmetic",
        "odds: odds SHARED/events/final_manual.csv --label Occupation --text Text",
        slow=True,
    ),
    case("shared/filter", "arithmetic", "filtering: filter SHARED/swag/swag_sent1_subset.txt"),
    case(
        "shared/pronouns",
        "model",
        Step("filter SHARED/swag/swag_sent1_subset.txt -o swag.jsonl"),
        f"pronouns: measure pronouns mini second --data swag.jsonl {CPU}",
        slow=True,
    ),
    case(
        "shared/association",
        "model",
        f"association: measure professions mini --data SHARED/becpro/BEC-Pro_EN.tsv {CPU}",
        slow=True,
    ),
    case(
        "shared/crows/shared",
        "model",
        f"crows: measure crows mini second --data shared_pairs.csv {CPU}",
        slow=True,
    ),
    case(
        "shared/crows/unmasked",
        "model",
        "crows: measure crows mini --data SHARED/crows/crows_pairs_anonymized.csv"
        f" --method unmasked {CPU}",
        slow=True,
    ),
    case(
        "shared/posterior/religion",
        "posterior",
        f"fits: lab posterior fit SHARED/cosine/religionReddit.csv {POSTERIOR}",
    ),
    case(
        "shared/posterior/gender",
        "posterior",
        f"fits: lab posterior fit SHARED/cosine/genderReddit.csv --family crossed {POSTERIOR}",
    ),
    case(
        "shared/posterior/compare",
        "posterior",
        "paired_fits: lab posterior compare SHARED/cosine/religionReddit.csv"
        f" SHARED/cosine/debiasedReligionReddit.csv {POSTERIOR}",
    ),
    case(
        "shared/fewshot",
        "training",
        Step(
            f"{FEWSHOT} --data SHARED/events/final_manual.csv --text Text --label Occupation"
            " --gender Gender --at-least 8 --each-gender 2 --any-leaning --out events",
            "fewshot",
        ),
        slow=True,
    ),
)


PEOPLE = ("nurse", "doctor", "guard", "clerk", "cook", "baker", "pilot", "judge", "coach", "singer")
WHERE = ("at the door", "in the hall", "by the car", "on the stage", "near the shop")
FRAMES = (
    ("she", "The {} said that [MASK] would wait {}."),
    ("his", "The {} lost [MASK] keys {}."),
    ("her", "The {} raises [MASK] arm {}."),
    ("himself", "The {} hid [MASK] {}."),
)
MIXED = (
    "The dancer shakes her hips.",
    "A girl plays with her doll.",
    "Someone ties his laces. The driver forgot her bag on the bus.",
    "It rains.",
    "The clerk lost his keys and his hat.",
    "Mary told the nurse that she was late.",
    "The engineer checked his notes before the meeting. The plumber brought her tools.",
    "John raised his hand.",
    "The teacher of the boy lost her book.",
    "The farmer sold his horses, but the merchant kept the saddle.",
)
SEEDS = "The cook put her spoon on the table.\nThe coach raised his arm and smiled.\n"
CATEGORIES = ("gender", "age", "nationality")
CHANGES = (
    ("woman", "man"),
    ("girl", "boy"),
    ("mother", "father"),
    ("old", "young"),
    ("grandfather", "student"),
    ("italian", "english"),
    ("french", "american"),
    ("aunt", "uncle"),
)
SENTENCES = (
    "The {} could not read the map.",
    "The {} person was late for work again.",
    "Everybody knows that the {} one cooks well.",
)


def write_inputs(folder: Path) -> None:
    """All that the commands of the cases read, apart from the embedded defaults."""
    lines = [
        f"The {who} {act} {word} {thing} {where}."
        for who in PEOPLE
        for act, thing in (("raises", "arm"), ("drops", "hat"))
        for word in ("his", "her")
        for where in WHERE
    ]
    _write_lines(folder / "text.txt", lines)
    for number in range(4):
        _write_lines(folder / f"shard-{number}.txt", [*lines[number::8], *MIXED[number::4]])
    _write_lines(folder / "mixed.txt", MIXED)
    (folder / "seeds.txt").write_text(SEEDS, encoding="utf-8")
    _write_lines(folder / "filtered.jsonl", map(json.dumps, _filtered()))
    rows = [
        (text.format(more), text.format(less), direction, CATEGORIES[index % 3], f"w{index % 5}")
        for index, (more, less) in enumerate(CHANGES)
        for text, direction in zip(SENTENCES, ("stereo", "stereo", "antistereo"), strict=True)
    ]
    header = ("sent_more", "sent_less", "stereo_antistereo", "bias_type", "anon_writer")
    _write_table(folder / "pairs.csv", header, rows)
    jobs = [(who, "mfb"[index % 3]) for index, who in enumerate(PEOPLE)]
    groups = {"m": ("male", 20), "f": ("female", 80), "b": ("balanced", 50)}
    _write_table(
        folder / "professions.csv",
        ("profession", "group", "women"),
        [(who, groups[group][0], groups[group][1] + len(who)) for who, group in jobs],
    )
    _write_lines(
        folder / "templates.txt",
        [
            "{person} is a {profession}.",
            "{person} works as a {profession}.",
            "{person} became a {profession} last year.",
        ],
    )
    people = [
        (who, "M" if (person * (index + 2)) % 7 < 4 else "F")
        for index, who in enumerate(PEOPLE)
        for person in range(11 + 3 * index)
    ]
    texts = {"M": "He lives here with his dog.", "F": "Her work is known; she writes it herself."}
    _write_table(
        folder / "jobs.csv", ("job", "sex", "text"), [(job, sex, texts[sex]) for job, sex in people]
    )
    (folder / "query.json").write_text(
        json.dumps(
            {
                "name": "jobs",
                "targets": {
                    "care": ["nurse", "teacher", "librarian", "nanny", "receptionist"],
                    "craft": ["engineer", "mechanic", "carpenter", "pilot", "electrician"],
                },
                "attributes": {
                    "female": ["she", "woman", "mother", "girl"],
                    "male": ["he", "man", "father", "boy"],
                },
            }
        ),
        encoding="utf-8",
    )
    _write_distances(folder)
    _write_grids(folder)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_table(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def _filtered() -> Iterator[dict[str, object]]:
    """Sentences in the form that `text filter` writes."""
    for index, who in enumerate(PEOPLE[:8]):
        for pronoun, frame in FRAMES:
            masked = frame.format(who, WHERE[index % len(WHERE)])
            yield {
                "line": index,
                "sentence": masked.replace("[MASK]", pronoun),
                "pronoun": pronoun,
                "masked": masked,
                "antecedent": f"The {who}",
                "confidence": 0.9,
                "source": "golden",
            }


def write_sheets(folder: Path) -> None:
    """The sheets of three annotators, filled."""
    _write_lines(folder / "judged.jsonl", map(json.dumps, _filtered()))
    _run("lab annotate sheet judged.jsonl -o sheet.csv", folder)
    with (folder / "sheet.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, name in enumerate(("ann", "ben", "cleo")):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            for index, row in enumerate(rows):
                answer = "no" if index % (4 + number) == 0 else "yes"
                writer.writerow(row | {"verdict": answer})


def _write_distances(folder: Path) -> None:
    """Two small tables of distances: 6 protected words in two classes, 30 attributes."""
    header = (
        "protectedWord",
        "wordToCompare",
        "wordClass",
        "cosineDistance",
        "cosineSimilarity",
        "connection",
    )
    classes = {"ann": "f", "eve": "f", "sue": "f", "bob": "m", "jim": "m", "tom": "m"}
    attributes = [(f"{kind}{number}", kind) for kind in ("f", "m") for number in range(6)]
    attributes += [(f"human{number}", "human") for number in range(9)]
    attributes += [(f"thing{number}", "none") for number in range(9)]
    for number, (name, contrast) in enumerate((("distances", 0.1), ("after", 0.03))):
        rows = []
        for i, (word, own) in enumerate(classes.items()):
            for j, (attribute, kind) in enumerate(attributes):
                if kind in ("f", "m"):
                    connection = "associated" if kind == own else "different"
                else:
                    connection = kind
                level = {"associated": 0.7 - contrast, "different": 0.7, "human": 0.75, "none": 0.9}
                # noise without a generator, the same in every version of NumPy
                noise = math.sin(12.9898 * (i + 1) + 78.233 * (j + 1) + number) * 43758.5453
                distance = level[connection] + 0.2 * (noise - math.floor(noise) - 0.5)
                distance += 0.03 * math.sin(i + 1) + 0.05 * math.sin(3 * j)
                distance = round(distance, 6)
                rows.append((word, attribute, own, distance, round(1 - distance, 6), connection))
        _write_table(folder / f"{name}.csv", header, rows)


def _write_grids(folder: Path) -> None:
    networks = [
        "matching-cosine",
        "matching-euclidean",
        "proto-euclidean",
        "proto-cosine",
        "proto-soft",
        "relation-base",
        "relation-ntl",
        "induction",
        "maml",
    ]
    grids = {
        "vectors": {
            "task": "vectors",
            "fixed": {"null": 50, "permutations": 1000, "metrics": ["weat", "mac"]},
            "axes": {"topic": ["gender", "religion"], "debias": ["none", "hard"]},
        },
        "masked": {
            "task": "masked",
            "fixed": {"prob": 0.95},
            "axes": {"model": ["mini", "second"], "measure": ["score", "associate", "phrases"]},
        },
        "text": {
            "task": "text",
            "fixed": {
                "shards": "shard-*.txt",
                "out": "filtered-{keep_someone}",
                "operation": "filter",
            },
            "axes": {"keep_someone": [False, True]},
        },
        "fewshot": {
            "task": "fewshot",
            "fixed": {
                "data": "simulated:per_class=8,leak=1",
                "leaning": "share",
                "mitigate": "all",
                "neutral": False,
                "encoder": "mini",
                "ways": 2,
                "shots": 2,
                "queries": 2,
                "episodes": "16/6/24",
                "batch": 4,
            },
            "axes": {"network": networks, "mitigation": ["none", "neutralize"], "seed": [1, 2]},
        },
    }
    for name, grid in grids.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))


def write_second_model(folder: Path) -> None:
    """A second masked model: mini with two of its biases halved, which is exact."""
    mini = Path(evenhand.__file__).parent / "assets" / "mini"
    shutil.copytree(mini, folder / "second")
    weights = load_file(mini / "model.safetensors")
    for name in ("cls.predictions.bias", "bert.encoder.layer.0.output.dense.bias"):
        weights[name] = weights[name] * np.float16(0.5)
    (folder / "second" / "model.safetensors").unlink()
    save_file(weights, folder / "second" / "model.safetensors", metadata={"format": "pt"})


def write_shared_pairs(folder: Path) -> None:
    """Every twelfth pair of CrowS-Pairs."""
    source = SHARED / "crows" / "crows_pairs_anonymized.csv"
    with source.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    _write_table(folder / "shared_pairs.csv", tuple(header), [tuple(row) for row in rows[::12]])


def _run(command: str, folder: Path) -> str:
    """What a command prints on stdout; it must succeed."""
    words = [word.replace("SHARED", str(SHARED)) for word in shlex.split(command)]
    printed, complaints = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complaints),
    ):
        code = run(words)
    if code != 0:
        raise AssertionError(f"evenhand {command}: exit {code}: {complaints.getvalue()}")
    return printed.getvalue()


def measure(case: Case, folder: Path) -> dict[str, extract.Numbers]:
    """Run a case in an empty folder; its numbers under their logical names.

    The caller sets XDG_CACHE_HOME, so that no cache of the user is read.
    """
    write_inputs(folder)
    commands = " ".join(step.command for step in case.steps)
    if "second" in commands or case.name == "grid/masked":
        write_second_model(folder)
    if "annotate" in commands:
        write_sheets(folder)
    if "shared_pairs" in commands:
        write_shared_pairs(folder)
    rows: dict[str, extract.Numbers] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in case.steps:
            printed = _run(step.command + (" --json" if step.kind else ""), folder)
            if not step.kind:
                continue
            kind, _, path = step.kind.partition(" ")
            text = (folder / path).read_text(encoding="utf-8") if path else printed
            prefix = f"{step.name}/" if step.name else ""
            part = extract.extract(kind, json.loads(text))
            rows |= {f"{prefix}{name}": values for name, values in part.items()}
    return rows
