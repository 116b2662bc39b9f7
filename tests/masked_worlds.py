"""Masked language models whose every probability is known, with or without a planted bias.

At a mask the log odds of a male word against its female counterpart are
`bias + slope * lean + noise`: `lean` is 1 where the row shows a profession that men mostly hold or
a phrase about men, -1 for women's, 0 elsewhere. The noise is that of the row and of the
profession shown, so that a model with bias 0 and slope 0 is clean and yet no two rows agree.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtri

from evenhand.audit import main
from evenhand.audit.stages import Options, Silent, Texts, run_stage, text_stages
from evenhand.fewshot.data import Dataset
from evenhand.files import document, save_json
from evenhand.lexicon.phrases import phrases
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.lexicon.templates import TemplateSet, professions
from evenhand.models import designs
from evenhand.models.designs import ProfessionDesign, design
from evenhand.models.metrics import phrases as phrase_metric
from evenhand.report.findings import Findings, read_findings
from evenhand.simulate.masked import MaskedBigrams, bigram_model

PAIRS = (
    ("he", "she"),
    ("his", "her"),
    ("him", "her"),
    ("himself", "herself"),
    ("man", "woman"),
    ("father", "mother"),
    ("brother", "sister"),
    ("son", "daughter"),
    ("uncle", "aunt"),
)
SHARES = np.array([0.5, *[0.0625] * 8])
"""Of all male words, and of all female words, the share of each of the pairs."""
DIM = 24


@cache
def base() -> MaskedBigrams:
    """The tokenizer and vocabulary of everything that is asked."""
    lists = phrases()
    texts = [*pronoun_sentences().sentences, *(one.text for one in design().sentences)]
    texts += [*lists.carriers, *lists.control]
    for listed in (*lists.attributes.values(), *(one.phrases for one in lists.sets.values())):
        texts += listed
    words = {word for text in texts for word in re.findall(r"[a-z]+|[^\sa-z]", text.lower())}
    return bigram_model({"[CLS]": dict.fromkeys(sorted(words | set(sum(PAIRS, ()))), 0.0)})


def token_ids(text: str) -> list[int]:
    ids: list[int] = base().tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


@cache
def leanings() -> tuple[tuple[str, float, int], ...]:
    """Token ids that carry a lean, longest first, their lean, and a number of their own."""
    signs = {"male": 1.0, "female": -1.0}
    leanings = {one.name: signs.get(one.group or "", 0.0) for one in professions()}
    for one in phrases().sets.values():
        for sign, side in zip(
            (0, 0) if one.neutral else (1, -1), one.targets.values(), strict=True
        ):
            leanings |= dict.fromkeys(side, float(sign))
    ids = [
        (
            f" {' '.join(map(str, token_ids(text)))} ",
            lean,
            number,
        )
        for number, (text, lean) in enumerate(leanings.items())
    ]
    return tuple(sorted(ids, key=lambda one: -len(one[0])))


@dataclass(frozen=True, eq=False)
class World:
    """A model with a planted bias towards men, and a slope with the leaning of what it reads."""

    bias: float = 0.0
    slope: float = 0.0
    embedded: float = 0.0
    seed: int = 0
    noise: float = 0.7
    name: str = "world"

    @property
    def tokenizer(self):
        return base().tokenizer

    @property
    def fingerprint(self) -> str:
        return f"{self.bias} {self.slope} {self.embedded} {self.seed} {self.noise}"

    @cached_property
    def own(self):
        """The noise of each profession and phrase; the last is for rows that show none."""
        return np.append(np.random.default_rng([self.seed, 1]).normal(size=len(leanings())), 0.0)

    def odds(self, rows):
        """The log odds of a male word at the mask of each row."""
        ids = np.array(rows, dtype=np.uint64)
        weights = np.random.default_rng([self.seed, 2]).integers(
            1 << 62, size=ids.shape[1], dtype=np.uint64
        )
        mixed = (ids * (2 * weights + 1)).sum(axis=1)
        mixed ^= mixed >> np.uint64(31)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
        uniform = ((mixed >> np.uint64(11)).astype(float) + 0.5) / 2.0**53
        lean, own = np.array([self.lean(tuple(row)) for row in rows]).T
        shared = self.own[own.astype(int)] * 0.5
        return self.bias + self.slope * lean + self.noise * (ndtri(uniform) + shared)

    @staticmethod
    def lean(row):
        if row not in lean_of:
            text = f" {' '.join(map(str, row))} "
            lean_of[row] = next(
                ((lean, number) for ids, lean, number in leanings() if ids in text), (0.0, -1)
            )
        return lean_of[row]

    def logits(self, rows, positions):
        x = self.odds(rows)
        size = len(self.tokenizer)
        found = np.full((len(rows), size), 0.1 / size)
        words = np.array([self.tokenizer.convert_tokens_to_ids(list(pair)) for pair in PAIRS])
        for column, share in zip(words, SHARES, strict=True):
            found[:, column[0]] += 0.9 * expit(x) * share
            found[:, column[1]] += 0.9 * expit(-x) * share
        return np.log(found).astype(np.float32)

    def embed(self, texts):
        sides = phrases().attributes.values()
        leanings = {
            text: 3.0 * sign for sign, side in zip((1, -1), sides, strict=True) for text in side
        }
        for one in phrases().sets.values():
            for sign, side in zip((1, -1), one.targets.values(), strict=True):
                leanings |= dict.fromkeys(side, 0.0 if one.neutral else self.embedded * sign)
        made = np.array(
            [
                np.random.default_rng([self.seed, zlib.crc32(text.encode())]).normal(size=DIM)
                for text in texts
            ]
        )
        made[:, 0] += [leanings.get(text, 0.0) for text in texts]
        made[:, 1] += 8.0  # all embeddings point much the same way
        return made


lean_of: dict[tuple[int, ...], tuple[float, int]] = {}
"""What rows of tokens carry a lean, the same in every world."""


def audited(stages, folder: Path, **subjects: str) -> Findings:
    """The stages run, saved and read back as an audit does."""
    (folder / "stages").mkdir(parents=True, exist_ok=True)
    done = [run_stage(stage, folder / "stages", stage.key({}), Silent())[0] for stage in stages]
    for stage in done:
        assert not stage.failed, stage.failed
    run = document(command=[], time="", seed=0, versions={}, files=[])
    findings = Findings(
        subjects={name: {"name": value, "source": value} for name, value in subjects.items()},
        settings={"prob": 0.95, "seed": 0, "quick": True, "parts": ["corpus", "masked"]},
        topics=(),
        stages=tuple(done),
        run=run,
    )
    findings.save(folder)
    save_json(folder / "run.json", run)
    return read_findings(folder)


@cache
def part_of_the_design() -> ProfessionDesign:
    """All professions, but a quarter of the sentences."""
    whole = design()
    few = TemplateSet(whole.templates[::3], whole.pairs[:4])
    return design(few)


def audited_model(world: World, data: Dataset, folder: Path, monkeypatch, **settings) -> Findings:
    """The findings of the masked stages on a world, with fewer templates and draws than usual."""
    monkeypatch.setattr(main, "loaded", lambda *_: world)
    monkeypatch.setattr(designs, "design", part_of_the_design)
    monkeypatch.setattr(phrase_metric, "RESAMPLES", 50)
    monkeypatch.setattr(phrase_metric, "PERMUTATIONS", 99)
    options = Options(quick=True, work=folder / "work", **settings)
    stages = main.model_stages("world", Texts(data, options), options)
    return audited(stages, folder, masked="world", corpus="d")


def audited_data(data: Dataset, folder: Path, **settings) -> Findings:
    """The findings of the text stages on some data."""
    options = Options(quick=True, work=folder / "work", **settings)
    return audited(text_stages(Texts(data, options)), folder, corpus=data.name)
