r"""The association of professions with men and women: $\log(p_{target} / p_{prior})$.

After Kurita et al. (2019) and Bartl, Nissim & Gatt (2020). In a sentence such as "Last year
my sister retrained as a plumber." the target is the person word, the attribute the profession:
$p_{target} = P(\text{sister} \mid \text{plumber shown})$, and
$p_{prior} = P(\text{sister} \mid \text{every piece of plumber masked})$, at the same position of
the same sentence. Their log ratio is the association; that of the man minus that of the woman is
reported: above 0, the profession suggests a man more than the sentence does without it.

A causal model does not see what follows the person word, so both odds are those of complete
sentences. With $L(m, x)$ the likelihood of the sentence with the man and profession x,

$\log\frac{p_{target}(m)}{p_{target}(f)} = \log\frac{L(m, x)}{L(f, x)}, \qquad
\log\frac{p_{prior}(m)}{p_{prior}(f)} = \log\frac{\sum_{x'} L(m, x')}{\sum_{x'} L(f, x')}$

The first is exact: the odds of the two persons given the rest of the sentence. The second sums over
the professions of the list as masking sums over whatever could be there; a neutral word in place of
the profession ("as a person") would be a choice of ours, and an odd sentence. The prior of a
template and pair is the same for all professions, so that contrast, order and correlation with the
share of women do not depend on it at all; the mean over all professions does, and on the list.
By Bayes' rule the difference is $\log P(x \mid m) - \log P(x \mid f)$ among the listed
professions, for both kinds of models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.instruments import (
    Declaration,
    Evidence,
    Instrument,
    Option,
    Run,
    instrument,
    shared_items,
)
from evenhand.models.causal import CausalLM
from evenhand.models.likelihood import LanguageModel, end_likelihoods, is_causal, likelihoods
from evenhand.models.masked import MaskedLM
from evenhand.models.words import (
    Span,
    WordError,
    WordQuery,
    WordRow,
    row,
    rows,
    word_log_probs,
)
from evenhand.results import Comparison, Items, Measurement
from evenhand.statistics.auc import auc
from evenhand.statistics.crossed import Mean, crossed, noise_of_one, pooled
from evenhand.statistics.intervals import Floats, fisher_z, jackknife

if TYPE_CHECKING:
    from evenhand.lexicon.templates import Profession, Template
    from evenhand.models.designs import DesignSentence, ProfessionDesign

RARE = 1e-4
"""Below this probability a log ratio compares two near impossibilities."""
TEST = "two-sided t test of no difference on the crossed table"
CONTRAST = "male-leaning - female-leaning professions"
BUILT_IN = "built-in professions"
BEFORE_PRONOUN = "The {} said that"
"""A causal model predicts *he* or *she* after this."""


@instrument(
    name="professions",
    subjects=("masked", "causal"),
    label="Profession association",
    question="Does a profession suggest a man or a woman?",
    formula="log(p_target(m) / p_prior(m)) - log(p_target(f) / p_prior(f))",
    source="Kurita et al. (2019); Bartl, Nissim & Gatt (2020)",
    role="required",
    size="log-odds",
    unit="sentences",
    material="sentences of templates, professions and persons (BEC-Pro table)",
    reading="p_target is the probability of the person word with the profession shown, p_prior "
    "with every piece of the profession masked; of a causal model, that of the sentence with any "
    "of the professions. Above 0 professions suggest a man. The contrast, professions held mostly "
    "by men minus those held mostly by women, is what decides. Interval: "
    "Student's over templates, professions and pairs, each with effects of its own; p: two-sided "
    "t test.",
    audit=True,
    command="associate",
)
class Professions(Instrument):
    r"""Profession association: how professions change the odds of words for men and for women.

    The material is a `Design`: templates, professions and pairs of persons
    (`evenhand.models.designs.design`) or a BEC-Pro table (`read_becpro`); the built-in ones by
    default. Professions and persons that the tokenizer cannot represent are left out and listed.

    Returns
    -------
    Measurement
        The mean difference over all cells. Parts: by "group" (who mostly holds the profession); by
        "contrast" male-leaning minus female-leaning professions; by "profession", sorted by the
        partially pooled value, which is a part by "estimate"; by "template" with the value without
        it in `details`; by "correlation" the rank correlation with the share of women. Items: one
        row per template, profession and pair of persons. A causal model has a part by "reading"
        too: the log odds of *he* against *she* after "The X said that", male-leaning less
        female-leaning professions, with the area under the curve (AUC) of the two groups.

    Notes
    -----
    $\log(p_{target}(m)/p_{prior}(m)) - \log(p_{target}(f)/p_{prior}(f))$, Kurita et al. (2019),
    Bartl et al. (2020). Templates, professions and pairs are crossed random effects.

    Examples
    --------
    >>> from evenhand.lexicon.templates import PersonPair, Profession
    >>> from evenhand.models import load
    >>> from evenhand.models.designs import design
    >>> jobs = [Profession(name) for name in ("nurse", "plumber", "pilot")]
    >>> sentences = design(attributes=jobs, persons=[PersonPair("he", "she")])
    >>> Professions()(load("mini"), sentences).select("profession")[-1].query
    'nurse'
    """

    material_options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="templates",
            type=str,
            default=None,
            metavar="FILE",
            help="Your sentences with {person} and {profession}: one per line, or a TOML file.",
        ),
        Option(
            name="professions",
            type=str,
            default=None,
            metavar="FILE",
            help="Your professions: one per line, or CSV with profession, group, women.",
        ),
        Option(
            name="persons",
            type=str,
            default=(),
            multiple=True,
            metavar="MALE/FEMALE",
            help="A pair of persons, such as he/she or 'my brother/my sister'; repeatable.",
        ),
    )

    def read(self, path: str | os.PathLike[str]) -> ProfessionDesign:
        """The sentences of a BEC-Pro table; professions without all sentences are left out."""
        from evenhand.models.designs import read_becpro

        return read_becpro(path)[0]

    @staticmethod
    def choose(
        *,
        templates: str | os.PathLike[str] | None = None,
        professions: str | os.PathLike[str] | None = None,
        persons: Sequence[str] | None = None,
    ) -> ProfessionDesign:
        """The sentences of files of templates and professions and of pairs such as he/she.

        What is not given is built in.
        """
        from evenhand.lexicon.templates import PersonPair, read_professions, read_templates
        from evenhand.models.designs import design

        return design(
            None if templates is None else read_templates(templates),
            None if professions is None else read_professions(professions),
            [PersonPair.parse(text) for text in persons] if persons else None,
        )

    def measure(
        self, subject: LanguageModel, material: ProfessionDesign | None = None, run: Run = Run()
    ) -> Measurement:
        from evenhand.models.designs import design

        query = BUILT_IN if material is None else "professions"
        if is_causal(subject):
            return _measure_causal(subject, material or design(), query, run)
        model = subject
        chosen, sentences, left_out = _rows(model, material or design())
        queries = [
            WordQuery(sentence, 0, hidden) for sentence in sentences for hidden in ((), (1,))
        ]
        answers = word_log_probs(model, queries, **run.querying)
        answers = answers.reshape(*chosen.shape, 2, 2)
        return _measurement(
            chosen,
            answers[..., 0],
            answers[..., 1],
            query=query,
            subject=subject.name,
            run=run,
            left_out=left_out,
        )

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The contrast decides: an association of all professions can be that of the templates."""
        parts = [part for part in (measurement, *measurement.parts) if part.query == CONTRAST]
        if not parts:
            return []
        first, second = ("men", "women") if parts[0].value > 0 else ("women", "men")
        return [
            Evidence(
                measurement=parts[0],
                label="Professions, men's minus women's",
                quantity="a contrast of professions",
                claim=f"associates the professions of men with {first} and of women with {second}",
                sentence=f"Professions held mostly by {first} are associated with men more than "
                f"those held mostly by {second}.",
            )
        ]

    @staticmethod
    def clause(m: Measurement) -> str:
        """Whom professions suggest; of the contrast, which of them more."""
        if m.query != CONTRAST:
            return f"professions suggest a {'man' if m.value > 0 else 'woman'}"
        more, less = ("men", "women") if m.value > 0 else ("women", "men")
        return (
            f"professions held mostly by {more} suggest a man more than those held mostly by {less}"
        )

    @classmethod
    def example(cls) -> tuple[MaskedLM, ProfessionDesign]:
        """A small model and sentences."""
        from evenhand.lexicon.templates import PersonPair, Profession, Template, TemplateSet
        from evenhand.models.designs import design
        from evenhand.simulate.masked import bigram_model

        persons = (PersonPair("he", "she"), PersonPair("brother", "sister"))
        frames = tuple(Template(f"{{person}} {verb} a {{profession}}.") for verb in ("is", "was"))
        jobs = [
            Profession(name, group)
            for name, group in (("pilot", "male"), ("guard", "male"), ("nurse", "female"))
        ]
        words = {"he": 0.3, "she": 0.2, "brother": 0.1, "sister": 0.15}
        chain = {word: {"is": 0.5, "was": 0.4} for word in words}
        model = bigram_model(
            {"[CLS]": words, **chain, "a": dict.fromkeys(("pilot", "guard", "nurse"), 0.2)}
        )
        return model, design(TemplateSet(frames, persons), jobs, persons)

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The change on the cells that both have, paired cell by cell, and that of the contrast.

        Cells are the same where template, profession and pair of persons are.
        """
        if dict.fromkeys(before.items["template"]) != dict.fromkeys(after.items["template"]):
            raise InputError(
                f"compare: '{after.subject}' and '{before.subject}' have different templates"
            )
        first, second = shared_items(before, after, "template", "profession", "group", "pair")
        members = dict.fromkeys((item["profession"], item["group"]) for item in first)
        changes = [
            two["difference"] - one["difference"] for one, two in zip(first, second, strict=True)
        ]
        table = np.reshape(changes, (before.details["templates"], len(members), -1))
        mean, groups = crossed(table), [group for _, group in members]
        parts = []
        contrasts = [m.select("contrast") for m in (before, after)]
        contrast = _contrast(table, groups)
        if contrast is not None and contrasts[0] and contrasts[1]:
            parts.append(
                Comparison.of(
                    contrasts[0][0],
                    contrasts[1][0],
                    (contrast.value, *contrast.interval(before.prob)),
                    interval=_contrast_interval(contrast, groups),
                    paired=table[:, [g in ("male", "female") for g in groups], :].size,
                    p_value=contrast.p_value,
                    test=TEST,
                )
            )
        return Comparison.of(
            before,
            after,
            (mean.value, *mean.interval(before.prob)),
            interval=_interval(mean),
            paired=table.size,
            p_value=mean.p_value,
            test=TEST,
            parts=tuple(parts),
        )


def _measure_causal(model: CausalLM, design: ProfessionDesign, query: str, run: Run) -> Measurement:
    """The same by likelihoods of complete sentences, and the pronoun that is predicted next."""
    from scipy.special import logsumexp

    distinct = list({sentence.text: None for sentence in design.sentences})
    coded = dict(zip(distinct, model.encode(distinct), strict=True))
    unknown = getattr(model.tokenizer, "unk_token_id", None)

    def known(text: str, span: Span) -> bool:
        pieces = zip(coded[text].ids, coded[text].offsets, strict=True)
        return all(i != unknown for i, (low, high) in pieces if low < span[1] and high > span[0])

    design, left_out = _select(model.name, design, known)
    if len(design.professions) < 2:
        raise InputError(
            "professions: expected two or more for a causal model, since each is compared with all "
            f"of them, got {len(design.professions)}"
        )
    texts = [sentence.text for sentence in design.sentences]
    values, _ = likelihoods(model, texts, **run.querying)
    target = values.reshape(*design.shape, 2)
    prior = np.broadcast_to(logsumexp(target, axis=1, keepdims=True), target.shape)
    m = _measurement(
        design,
        target,
        prior,
        query=query,
        subject=model.name,
        run=run,
        left_out=left_out,
        causal=True,
    )
    pronoun = _next_pronoun(model, design.professions, run)
    return replace(m, parts=(*m.parts, pronoun)) if pronoun else m


def _next_pronoun(model: CausalLM, members: Sequence[Profession], run: Run) -> Measurement | None:
    """The log odds of *he* against *she* after each profession, by who mostly holds it."""
    chosen = [member for member in members if member.group in ("male", "female")]
    men = np.array([member.group == "male" for member in chosen], dtype=bool)
    if min(men.sum(), (~men).sum()) < 2:
        return None
    contexts = [BEFORE_PRONOUN.format(member.name) for member in chosen for _ in (0, 1)]
    ends = [" he", " she"] * len(chosen)
    values, _ = end_likelihoods(model, contexts, ends, **run.querying)
    odds = values.reshape(-1, 2) @ [1.0, -1.0]

    def part(
        name: str,
        metric: str,
        ideal: float,
        limit: float,
        statistic: Callable[[Floats, NDArray[np.bool_]], float],
        **more: object,
    ) -> Measurement:
        value = statistic(odds, men)
        index = np.arange(len(odds))
        without = [statistic(odds[index != i], men[index != i]) for i in index]
        low, high = jackknife(value, without, run.prob, strata=men)
        return Professions.declaration.result(
            run,
            name,
            (value, max(low, ideal - limit), min(high, ideal + limit)),
            metric=metric,
            n=len(odds),
            ideal=ideal,
            interval="jackknife over professions",
            subject=model.name,
            **more,
        )

    def separation(x: Floats, side: NDArray[np.bool_]) -> float:
        return auc(x[side], x[~side])[0]

    return part(
        "he - she after the profession",
        "professions_next",
        0.0,
        np.inf,
        lambda x, side: float(x[side].mean() - x[~side].mean()),
        by="reading",
        parts=(part("auc", "professions_auc", 0.5, 0.5, separation, by="component"),),
        details={
            "context": BEFORE_PRONOUN.format("X"),
            "log_odds": dict(zip([m.name for m in chosen], odds.tolist(), strict=True)),
        },
    )


def _rows(
    model: MaskedLM, design: ProfessionDesign
) -> tuple[ProfessionDesign, list[WordRow], tuple[str, ...]]:
    """The rows of the sentences, without what the tokenizer cannot represent."""
    try:
        return design, rows(model, [_text(sentence) for sentence in design.sentences]), ()
    except WordError:
        pass

    def known(text: str, span: Span) -> bool:
        try:
            row(model, text, [span])
        except WordError:
            return False
        return True

    chosen, left_out = _select(model.name, design, known)
    return chosen, rows(model, [_text(sentence) for sentence in chosen.sentences]), left_out


def _text(sentence: DesignSentence) -> tuple[str, tuple[Span, Span]]:
    return sentence.text, (sentence.person, sentence.profession)


def _select(
    model: str, design: ProfessionDesign, known: Callable[[str, Span], bool]
) -> tuple[ProfessionDesign, tuple[str, ...]]:
    """The design without the professions and pairs that are unknown, and their names."""
    unknown_professions, unknown_pairs = set[int](), set[int]()
    for t, p, k, gender in product(*(range(n) for n in (*design.shape, 2))):
        sentence = design.at(t, p, k, gender)
        if p not in unknown_professions and not known(sentence.text, sentence.profession):
            unknown_professions.add(p)
        if k not in unknown_pairs and not known(sentence.text, sentence.person):
            unknown_pairs.add(k)
    chosen = design.keep(
        [p for p in range(design.shape[1]) if p not in unknown_professions],
        [k for k in range(design.shape[2]) if k not in unknown_pairs],
    )
    if not chosen.sentences:
        raise InputError(
            f"model '{model}': its tokenizer can represent none of the "
            f"{'persons' if chosen.professions else 'professions'}"
        )
    names = [design.professions[p].name for p in sorted(unknown_professions)]
    names += [design.pairs[k].name for k in sorted(unknown_pairs)]
    return chosen, tuple(names)


def _measurement(
    design: ProfessionDesign,
    target: Floats,
    prior: Floats,
    *,
    query: str,
    subject: str,
    run: Run,
    left_out: Sequence[str] = (),
    causal: bool = False,
) -> Measurement:
    """The measurement of log probabilities (templates, professions, pairs, man and woman)."""
    scores = target - prior
    table = scores[..., 0] - scores[..., 1]
    members, summary = design.professions, _Summary(subject, run)
    templates = summary.by_template(table, design.templates)
    sensitivity = _sensitivity(table, [part.details["without"] for part in templates])
    overall = summary.measurement(query, crossed(table), table.size)
    women = summary.women(table, members)
    return replace(
        overall,
        items=_items(design, target, prior),
        parts=(
            *summary.by_group(table, members),
            *summary.by_profession(table, members),
            *templates,
            *([women] if women else []),
        ),
        left_out=tuple(left_out),
        details={
            **dict(zip(("templates", "professions", "pairs"), design.shape, strict=True)),
            "sensitivity": sensitivity,
            "random_model": 0.0,
        },
        notes=tuple(_notes(design, prior, overall.value, sensitivity, left_out, causal=causal)),
    )


def _items(design: ProfessionDesign, target: Floats, prior: Floats) -> Items:
    """One row per template, profession and pair, in the order of the table."""
    cells = list(np.ndindex(*design.shape))
    columns: dict[str, Any] = {
        "template": [design.templates[t].text for t, _, _ in cells],
        "kind": [design.templates[t].kind for t, _, _ in cells],
        "profession": [design.professions[p].name for _, p, _ in cells],
        "group": [design.professions[p].group or "" for _, p, _ in cells],
        "male": [design.pairs[k].words[0] for _, _, k in cells],
        "female": [design.pairs[k].words[1] for _, _, k in cells],
    }
    for gender, side in enumerate(("male", "female")):
        columns[f"log_target_{side}"] = target[..., gender].reshape(-1)
        columns[f"log_prior_{side}"] = prior[..., gender].reshape(-1)
        columns[f"score_{side}"] = (target - prior)[..., gender].reshape(-1)
    columns["difference"] = columns["score_male"] - columns["score_female"]
    columns["pair"] = [design.pairs[k].name for _, _, k in cells]
    return Items(columns)


@dataclass(frozen=True)
class _Summary:
    """The parts of a table of differences."""

    subject: str
    run: Run

    def measurement(
        self, query: str, mean: Mean, n: int, by: str = "", *, tested: bool = True
    ) -> Measurement:
        return Professions.declaration.result(
            self.run,
            query,
            (mean.value, *mean.interval(self.run.prob)),
            n=n,
            interval=_interval(mean),
            p_value=mean.p_value if tested else None,
            test=TEST if tested else "",
            subject=self.subject,
            by=by,
        )

    def by_group(self, table: Floats, members: Sequence[Profession]) -> list[Measurement]:
        """Each group of professions, and the contrast of male-leaning and female-leaning ones."""
        from evenhand.lexicon.templates import GROUPS

        groups = [member.group for member in members]
        parts = []
        for group in GROUPS:
            chosen = table[:, [g == group for g in groups], :]
            if chosen.size:
                parts.append(self.measurement(group, crossed(chosen), chosen.size, "group"))
        contrast = _contrast(table, groups)
        if contrast is not None:
            n = table[:, [g in ("male", "female") for g in groups], :].size
            part = self.measurement(CONTRAST, contrast, n, "contrast")
            parts.append(replace(part, interval=_contrast_interval(contrast, groups)))
        return parts

    def by_profession(self, table: Floats, members: Sequence[Profession]) -> list[Measurement]:
        """Every profession over templates and pairs, those most associated with men first."""
        _, shrunk = pooled(table)
        changes = _sign_changes(table).mean(axis=0)
        n = table.shape[0] * table.shape[2]
        parts = [
            replace(
                self.measurement(
                    member.name, crossed(table[:, [i], :]), n, "profession", tested=False
                ),
                parts=(self.measurement("pooled", shrunk[i], n, "estimate", tested=False),),
                details={
                    "group": member.group,
                    "women": member.women,
                    "sign_changes": float(changes[i]),
                },
            )
            for i, member in enumerate(members)
        ]
        return sorted(parts, key=lambda part: -part.parts[0].value)

    def by_template(self, table: Floats, templates: Sequence[Template]) -> list[Measurement]:
        """Every template over professions and pairs, in the order given.

        `without` is the overall difference with this template left out; `sign_changes` the share
        of professions whose sign here is not that of their mean; `agreement` the correlation of
        its professions with the mean of the other templates.
        """
        changes = _sign_changes(table).mean(axis=1)
        profiles = table.mean(axis=2)
        parts = []
        for i, template in enumerate(templates):
            others = np.delete(profiles, i, axis=0)
            mean, n = crossed(table[[i]]), table[i].size
            parts.append(
                replace(
                    self.measurement(template.text, mean, n, "template", tested=False),
                    details={
                        "kind": template.kind,
                        "without": float(others.mean()) if len(others) else None,
                        "sign_changes": float(changes[i]),
                        "agreement": _correlation(profiles[i], others.mean(axis=0))
                        if len(others)
                        else None,
                    },
                )
            )
        return parts

    def women(self, table: Floats, members: Sequence[Profession]) -> Measurement | None:
        """Spearman's correlation of the professions' differences with their shares of women.

        A model that follows the labour force reads below 0.
        """
        shares = zip(table.mean(axis=(0, 2)), [member.women for member in members], strict=True)
        return correlate_women(Professions.declaration, self.run, self.subject, shares)


def correlate_women(
    about: Declaration,
    run: Run,
    subject: str,
    values: Iterable[tuple[float, float | None]],
    over: str = "professions",
) -> Measurement | None:
    """Spearman's correlation of values with shares of women, of more than three that are known."""
    from scipy.stats import rankdata

    known = [(value, women) for value, women in values if women is not None]
    ranks = rankdata(np.array(known), axis=0) if len(known) > 3 else np.zeros((2, 2))
    r = _correlation(ranks[:, 0], ranks[:, 1])
    if r is None:
        return None
    return about.result(
        run,
        "share of women",
        (r, *fisher_z(r, len(known), run.prob, spearman=True)),
        metric=f"{about.name}_women",
        n=len(known),
        ideal=0.0,
        interval=f"Fisher's for Spearman's rank correlation, over {over}",
        subject=subject,
        by="correlation",
    )


def _contrast(table: Floats, groups: Sequence[str | None]) -> Mean | None:
    """Male-leaning minus female-leaning professions: above 0, the model follows the labour force.

    A group of one profession is assumed to spread as the other does; with one in each the interval
    is unbounded.
    """
    counts = {group: list(groups).count(group) for group in ("male", "female")}
    if not all(counts.values()):
        return None
    chosen = [i for i, group in enumerate(groups) if group in counts]
    sides = [str(groups[i]) for i in chosen]
    weights = [(1 if side == "male" else -1) / counts[side] for side in sides]
    return crossed(table[:, chosen, :], weights, sides)


def _contrast_interval(mean: Mean, groups: Sequence[str | None]) -> str:
    several = [group for group in ("male", "female") if list(groups).count(group) > 1]
    if not several:
        return "unbounded: one profession in each group says nothing about their spread"
    if len(several) == 1:
        return _interval(mean).replace(
            "professions", f"professions (spread of the {several[0]} ones taken for both groups)"
        )
    return _interval(mean)


def _interval(mean: Mean) -> str:
    return f"Student's, over {', '.join(mean.over) or 'nothing'} (crossed random effects)"


def _sensitivity(table: Floats, without: Sequence[float | None]) -> dict[str, float | None]:
    """How much the result depends on the choice of templates.

    `low`, `high`: the overall difference with one template left out; `changing`: the share of
    professions whose sign is not the same in all templates; `sign_changes`: how often a template
    gives a profession another sign than its mean; `reliability`: the share of the professions'
    spread that is not noise of templates and pairs.
    """
    known = [value for value in without if value is not None]
    signs = np.sign(table.mean(axis=2))
    spread = float(table.mean(axis=(0, 2)).var(ddof=1)) if table.shape[1] > 1 else 0.0
    noise = noise_of_one(table)
    return {
        "low": min(known, default=None),
        "high": max(known, default=None),
        "changing": float((signs != signs[0]).any(axis=0).mean()),
        "sign_changes": float(_sign_changes(table).mean()),
        "reliability": max(0.0, 1 - noise / spread) if spread and noise else None,
    }


def _sign_changes(table: Floats) -> Floats:
    """1 where a template gives a profession another sign than its mean (templates, professions)."""
    profiles = table.mean(axis=2)
    return np.asarray(np.sign(profiles) != np.sign(profiles.mean(axis=0)), dtype=float)


def _correlation(x: Floats, y: Floats) -> float | None:
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _notes(
    design: ProfessionDesign,
    prior: Floats,
    value: float,
    sensitivity: Mapping[str, float | None],
    left_out: Sequence[str],
    *,
    causal: bool,
) -> list[str]:
    """Notes for readers who quote the numbers."""
    templates, members, pairs = design.shape
    notes = []
    if templates == 1:
        notes.append("one template: the intervals say nothing about other wordings")
    if pairs == 1:
        notes.append("one pair of persons: the intervals say nothing about other person words")
    if members == 1:
        notes.append("one profession: the intervals say nothing about other professions")
    else:
        notes += _single_members(design)
    ends = (sensitivity["low"], sensitivity["high"])
    if any(end is not None and end * value < 0 for end in ends):
        notes.append("the overall difference changes its sign when one template is left out")
    if causal:
        notes.append(
            "the mean over all professions depends on which are listed, the contrast does not"
        )
    rare = 0.0 if causal else float((prior < np.log(RARE)).mean())
    if rare > 0.25:
        notes.append(
            f"the model gives {rare:.0%} of the person words less than 1 in {1 / RARE:,.0f} even "
            "with the profession hidden: there the log ratio compares near impossibilities"
        )
    if left_out:
        notes.append(f"left out, since the tokenizer cannot represent them: {', '.join(left_out)}")
    return notes


def _single_members(design: ProfessionDesign) -> list[str]:
    """A note on groups of one profession, and what that means for the contrast."""
    from evenhand.lexicon.templates import GROUPS

    groups = [member.group for member in design.professions]
    counts = {group: groups.count(group) for group in GROUPS}
    single = [group for group, n in counts.items() if n == 1]
    if not single:
        return []
    note = (
        f"one profession in a group ({', '.join(single)}): the interval of that group says nothing "
        "about other professions"
    )
    sides = counts["male"], counts["female"]
    if sides == (1, 1):
        note += "; male - female has no bounds"
    elif min(sides) == 1:
        note += "; male - female takes the spread of professions from the other"
    return [note]
