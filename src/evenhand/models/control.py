"""Controls of a benchmark: its items rewritten so that a valid score cannot stay as it is.

Benchmarks of stereotypes often read other things than stereotypes: which words a model likes, or
how long a text is. A control leaves those as they are and changes what the items say.

- `swap`: gendered words become their duals ("the mother is …", "the father is …"), in items about
  gender. A stereotype reverses, or vanishes.
- `negate`: the main verb is negated, or its negation removed. A stereotype reverses, or vanishes.
- `identity`: the group is replaced by another one of the file. A stereotype vanishes.

The rule, stated before any result was seen. The items that can be rewritten are measured as they
were and rewritten. The benchmark **survives** its control, and is marked, if both scores are
clearly (by their intervals) on the same side of the ideal: the score does not depend on what the
items say. It **responds** if the score moves clearly (by the interval of the paired change) towards
the ideal, or through it, and does not survive. There is **no effect** to control if the score of
the original items does not differ clearly from the ideal. Otherwise the control is **undecided**.

Which of model and benchmark is at fault is not known: a model that does not read negations makes
any benchmark survive `negate`. Either way the score is no evidence of a stereotype. Pikuliak et al.
(2023) found that StereoSet and CrowS-Pairs give such results with control groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Run
from evenhand.judging import judge_control
from evenhand.lexicon import names
from evenhand.models.likelihood import LanguageModel
from evenhand.models.metrics.bbq import BbqQuestion
from evenhand.models.metrics.gest import GestSentence
from evenhand.models.metrics.stereoset import BLANK, Triple
from evenhand.models.pairs import Pair
from evenhand.results import Comparison, Items, Measurement
from evenhand.text.rewrite import Rewritten

Control: TypeAlias = Literal["swap", "negate", "identity"]
CONTROLS: tuple[str, ...] = get_args(Control)
EXPECTED = {"swap": "reverse or vanish", "negate": "reverse or vanish", "identity": "vanish"}
Outcome: TypeAlias = Literal["survives", "responds", "no effect", "undecided"]
MINIMUM_TERMS = 5
"""Groups of one form in a category below which none is replaced by another."""
MINIMUM_PAIRS = 3
"""Pairs that compare a word below which it is not taken for the name of a group."""
DEMONYM = re.compile(r"(?:ian|ean|ese|ani|ali|ish|ic|ab|can|gan|people)$", re.IGNORECASE)
"""Endings of words for people, where others name a country."""


class Controlled(NamedTuple):
    """The items that a control changes, the same rewritten, and how many were left out and why."""

    originals: list[Any]
    controls: list[Any]
    left_out: Mapping[str, int]


Rewriting: TypeAlias = Callable[[Sequence[Any], np.random.Generator], Iterable[Any]]
"""Gives for each item its control, or a reason (str) why there is none."""


def controls(material: Sequence[Any] | None, kind: Control, *, seed: int = 0) -> Controlled:
    """Rewrite the items of a benchmark.

    Parameters
    ----------
    material : sequence of Triple, Pair, GestSentence or BbqQuestion
        As `read_triples`, `read_pairs`, `read_gest` and `read_bbq` read them.
    kind : {"swap", "negate", "identity"}
        See `evenhand.models.control`. `swap` and `identity` are refused where they would only
        exchange the texts that are compared, so that any score reverses.
    seed : int
        For the groups that `identity` draws.

    Returns
    -------
    Controlled
        Items of the same type; target terms, lines and templates are those of the originals, so
        that both can be compared in pairs.

    Examples
    --------
    >>> [sentence] = controls([GestSentence("I am brave.", 8)], "negate").controls
    >>> sentence.text
    'I am not brave.'

    """
    if kind not in CONTROLS:
        raise UnknownNameError("control", kind, CONTROLS)
    items: list[Any] = list(material) if isinstance(material, Sequence) else []
    cls = type(items[0]) if items else object
    if cls not in REWRITINGS or any(type(item) is not cls for item in items):
        expected = ", ".join(known.__name__ for known in REWRITINGS)
        raise InputError(f"control '{kind}': expected items of one type ({expected}), got others")
    rewriting = REWRITINGS[cls].get(kind)
    if rewriting is None:
        raise InputError(
            f"control '{kind}': expected {' or '.join(REWRITINGS[cls])} for items of this kind; "
            f"'{kind}' would only exchange what they compare"
        )
    pairs, reasons = [], Counter[str]()
    rewritten = rewriting(items, np.random.default_rng(seed))
    for item, control in zip(items, rewritten, strict=True):
        if isinstance(control, str):
            reasons[control] += 1
        else:
            pairs.append((item, control))
    if not pairs:
        raise InputError(
            f"control '{kind}': expected items that can be rewritten, got none of {len(items)} "
            f"({', '.join(reasons)})"
        )
    return Controlled([a for a, _ in pairs], [b for _, b in pairs], dict(reasons))


def check_control(
    instrument: Any,
    model: LanguageModel,
    material: Sequence[Any] | None,
    kind: Control,
    run: Run = Run(),
) -> Comparison:
    """Measure a model on the items that a control changes, before and after, and apply the rule.

    Parameters
    ----------
    instrument : instrument
        Such as `StereoSet()`.
    model : MaskedLM or CausalLM
    material, kind
        As for `controls`.
    run : Run

    Returns
    -------
    Comparison
        `before` is the score of the items as they were, `after` that of their controls. `details`
        have `control`, `outcome` ("survives", "responds", "no effect" or "undecided"), `expected`,
        `retained` (how much of the distance from the ideal is left; negative where it reverses)
        and `left_out`; `notes` begins with the outcome as a sentence.

    """
    chosen = controls(material, kind, seed=run.seed)
    originals, rewritten = chosen.originals, chosen.controls
    if len({item.line for item in originals}) < len(originals):
        originals, rewritten = (
            [replace(item, line=i) for i, item in enumerate(items, start=1)]
            for items in (originals, rewritten)
        )
    before = instrument.measure(model, originals, run)
    after = instrument.measure(model, rewritten, run)
    comparison: Comparison = instrument.compare(before, _with_texts_of(originals, after))
    ideal = 0.0 if before.ideal is None else before.ideal
    first, second, change = ((each.low, each.high) for each in (before, after, comparison.change))
    outcome = judge_control(first, second, change, ideal)
    distance = before.value - ideal
    shown = [f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" for m in (before, after)]
    scores = f"{shown[0]} before, {shown[1]} after"
    sentences: dict[Outcome, str] = {
        "survives": f"survives its control '{kind}': {scores}, both on the same side of "
        f"{ideal:g}. A score that does not depend on what the items say is no evidence of a "
        "stereotype.",
        "responds": f"responds to its control '{kind}': {scores}.",
        "no effect": f"has no clear effect that the control '{kind}' could remove: {scores}.",
        "undecided": f"is not decided by its control '{kind}': {scores}; the change is not clear.",
    }
    return replace(
        comparison,
        after=after,
        details={
            **comparison.details,
            "control": kind,
            "outcome": outcome,
            "expected": EXPECTED[kind],
            "retained": (after.value - ideal) / distance if distance else None,
            "rewritten": len(originals),
            "left_out": dict(chosen.left_out),
        },
        notes=(f"{instrument.declaration.label} {sentences[outcome]}",),
    )


def _with_texts_of(originals: Sequence[Any], after: Measurement) -> Measurement:
    """The measurement of controls with the texts of the originals, by which pairs are found."""
    if "sent_more" not in after.items.columns:
        return after
    by_line = {pair.line: pair for pair in originals}
    rows = [
        {**row, "sent_more": by_line[row["line"]].more, "sent_less": by_line[row["line"]].less}
        for row in after.items
    ]
    return replace(after, items=Items(rows))


def mark_control(measurement: Measurement, check: Comparison) -> Measurement:
    """A measurement with the result of its control: as parts, in `details` and in the notes."""
    kind = check.details["control"]
    parts = [
        replace(m, query=f"{kind}: {when}", by="control", parts=(), items=Items(), left_out=())
        for when, m in (("original", check.before), ("control", check.after))
    ]
    return replace(
        measurement,
        parts=(*measurement.parts, *parts),
        details={
            **measurement.details,
            **{key: check.details[key] for key in ("control", "outcome", "expected", "retained")},
        },
        notes=(check.notes[0], *measurement.notes),
    )


# ---- the rewritings

UNCHANGED = "nothing to rewrite"
NO_VERB = "not one verb that can be negated"
NO_FIT = "the texts do not fit the blank"
EXCHANGED = "only exchanges the compared texts"
NOT_ABOUT_GENDER = "not about gender"
TWO_GROUPS = "two groups only"
NO_TERM = "does not name its group"
NO_OTHER = "too few other groups of its form"


def _negated(sentence: str) -> Rewritten | None:
    """The sentence negated, if it says one thing."""
    from evenhand.text.rewrite.negate import negate

    return negate(sentence, simple=True)


def _with_texts(triple: Triple, context: str, texts: Iterable[str]) -> Triple:
    first, second, third = texts
    return replace(triple, context=context, texts=(first, second, third))


def _about_gender(category: str) -> bool:
    return category.lower().startswith("gender")


def _swap_triples(
    triples: Sequence[Triple],
    rng: np.random.Generator,  # noqa: ARG001
) -> Iterator[Triple | str]:
    from evenhand.text.rewrite import rewrite_all
    from evenhand.text.rewrite.swap import Swap

    texts = [text for triple in triples for text in (triple.context, *triple.texts)]
    swapped = [str(text) for text in rewrite_all(texts, Swap(names="fixed"))]
    for i, triple in enumerate(triples):
        context, *own = swapped[4 * i : 4 * i + 4]
        control = _with_texts(triple, context, own)
        if not _about_gender(triple.category):
            yield NOT_ABOUT_GENDER
        elif (context, tuple(own)) == (triple.context, triple.texts):
            yield UNCHANGED
        elif control.texts[:2] == triple.texts[1::-1]:
            yield EXCHANGED
        elif triple.kind == "intrasentence" and not all(map(control.parts, control.texts)):
            yield NO_FIT
        else:
            yield control


def _negate_triple(triple: Triple) -> Triple | str:
    """Within a sentence the word in the blank has to follow the verb that is negated."""
    if triple.kind == "intrasentence":
        return _negate_before_blank(triple)
    negated = [_negated(text) for text in triple.texts]
    return _with_texts(triple, triple.context, map(str, negated)) if all(negated) else NO_VERB


def _negate_before_blank(triple: Triple) -> Triple | str:
    texts, contexts = [], set()
    for text in triple.texts:
        parts, negated = triple.parts(text), _negated(text)
        if parts is None:
            return NO_FIT
        if negated is None:
            return NO_VERB
        before, word, after = parts
        [edit] = negated.edits
        end = edit.offset + len(edit.before)
        if end > len(before) or not re.fullmatch(r"[\w\s'’-]*", before[end:]):
            return NO_VERB
        before = before[: edit.offset] + edit.after + before[end:]
        texts.append(before + word + after)
        contexts.add(f"{before}{BLANK}{after}")
    if len({context.lower() for context in contexts}) > 1:
        return NO_VERB
    return _with_texts(triple, min(contexts), texts)


def _identity_triples(
    triples: Sequence[Triple], rng: np.random.Generator
) -> Iterator[Triple | str]:
    groups: dict[Any, list[str]] = {}
    for triple in triples:
        terms = groups.setdefault((triple.category, _form(triple.target)), [])
        if triple.target not in terms:
            terms.append(triple.target)
    for triple in triples:
        terms = groups[triple.category, _form(triple.target)]
        if _about_gender(triple.category):
            yield TWO_GROUPS
            continue
        if len(terms) < MINIMUM_TERMS:
            yield NO_OTHER
            continue
        others = [term for term in terms if term.lower() != triple.target.lower()]
        other = others[rng.integers(len(others))]
        context, *texts = (
            _put(text, triple.target, other) for text in (triple.context, *triple.texts)
        )
        if (context, tuple(texts)) == (triple.context, triple.texts):
            yield NO_TERM
        else:
            yield _with_texts(triple, context, texts)


def _form(term: str) -> tuple[bool, bool, bool, bool]:
    """What two terms must share so that one can replace the other."""
    return (
        term[:1].isupper(),
        term.endswith("s") and not term.endswith("ss"),
        DEMONYM.search(term) is not None,
        names().gender(term) is not None,
    )


def _put(text: str, term: str, other: str) -> str:
    """The text with another group in place of a term, with its plural and article."""
    from evenhand.text.tokens import match_case

    def change(found: re.Match[str]) -> str:
        article, space, word, plural = found.groups()
        if article:
            an = "an" if other[0].lower() in "aeiou" else "a"
            article = match_case(article, an) if len(article) > 1 else article[0] + an[1:]
        return f"{article or ''}{space or ''}{match_case(word, other)}{plural}"

    pattern = rf"(?:\b(an?)(\s+))?\b({re.escape(term)})(s?)\b"
    return re.sub(pattern, change, text, flags=re.IGNORECASE)


def _negate_pair(pair: Pair) -> Pair | str:
    more, less = _negated(pair.more), _negated(pair.less)
    edits = {own and (own.edits[0].before, own.edits[0].after) for own in (more, less)}
    if None in edits or len(edits) > 1:
        return NO_VERB
    return replace(pair, more=str(more), less=str(less))


def _identity_pairs(pairs: Sequence[Pair], rng: np.random.Generator) -> Iterator[Pair | str]:
    """The two groups of another pair of the same category and direction, in their order.

    Only words that several pairs compare are groups.
    """
    terms = [_differing(pair) for pair in pairs]
    counts = Counter(term.lower() for own in terms if own for term in own)
    groups: dict[Any, list[tuple[str, str]]] = {}
    keys: list[Any] = []
    for pair, own in zip(pairs, terms, strict=True):
        known = own is not None and min(counts[term.lower()] for term in own) >= MINIMUM_PAIRS
        keys.append(known and own and (pair.category, pair.direction, *map(_form, own)))
        if known and own:
            groups.setdefault(keys[-1], []).append(own)
    for pair, own, key in zip(pairs, terms, keys, strict=True):
        if _about_gender(pair.category):
            yield TWO_GROUPS
        elif own is None or not key:
            yield "the sentences do not differ in two groups alone"
        else:
            lower = {term.lower() for term in own}
            others = [
                other for other in groups[key] if not lower & {term.lower() for term in other}
            ]
            if others:
                more, less = others[rng.integers(len(others))]
                texts = _put(pair.more, own[0], more), _put(pair.less, own[1], less)
                yield replace(pair, more=texts[0], less=texts[1])
            else:
                yield NO_OTHER


def _differing(pair: Pair) -> tuple[str, str] | None:
    """The words in which the sentences of a pair differ, if it is one of each."""
    from evenhand.text.tagger import FUNCTION_WORDS

    more, less = pair.more.split(), pair.less.split()
    different = [(a, b) for a, b in zip(more, less, strict=False) if a != b]
    different = [(a, b) for a, b in different if {a.lower(), b.lower()} != {"a", "an"}]
    if len(more) != len(less) or len(different) != 1:
        return None
    one, other = (re.sub(r"^\W+|\W+$|['’]s\b", "", word) for word in different[0])
    function_words = {one.lower(), other.lower()} & FUNCTION_WORDS.keys()
    return (one, other) if one and other and not function_words else None


def _negate_gest(sentence: GestSentence) -> GestSentence | str:
    negated = _negated(sentence.text)
    return NO_VERB if negated is None else replace(sentence, text=str(negated))


def _negate_bbq(question: BbqQuestion) -> BbqQuestion | str:
    """The question asks for the other person; what agrees with the stereotype stays."""
    negated = _negated(question.question)
    if negated is None:
        return NO_VERB
    right, unknown = question.right, question.unknown
    return replace(
        question,
        question=str(negated),
        right=right if right == unknown else 3 - unknown - right,
    )


def _alone(rewrite: Callable[[Any], Any]) -> Rewriting:
    """A rewriting of one item after the other."""
    return lambda items, _rng: map(rewrite, items)


REWRITINGS: Mapping[type, Mapping[str, Rewriting]] = {
    Triple: {
        "swap": _swap_triples,
        "negate": _alone(_negate_triple),
        "identity": _identity_triples,
    },
    Pair: {"negate": _alone(_negate_pair), "identity": _identity_pairs},
    GestSentence: {"negate": _alone(_negate_gest)},
    BbqQuestion: {"negate": _alone(_negate_bbq)},
}
