"""Reduce gender bias within a language model: affine maps of its states, then measure again.

A map is fitted on texts in two versions, all of whose gendered words are male or female. At each
layer it sees the states of all their tokens, and the gender of the text is the concept: LEACE
erases it by the smallest change, `project` removes the difference of the two means, and `steer`
adds it. What changed is measured on texts that were not fitted on: whether a probe still finds the
gender, and how well the model still predicts.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.files import PARTIAL, parse_json, public_name, save_json
from evenhand.instruments import Declaration, Progress, Run, compare, lookup, option
from evenhand.models.causal import CausalModel
from evenhand.models.causal_scoring import run_rows
from evenhand.models.encoder import MODULES, PooledDense, SentenceEncoder
from evenhand.models.forward import ForwardPass, batches, map_stages
from evenhand.models.layers import FILE, LayerMaps, StateMap, hooked
from evenhand.models.masked import MaskedModel
from evenhand.models.masked_scoring import encode
from evenhand.models.sources import DATA_FILES, PICKLED, locate, quiet
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.erasure import AffineMap, leace, project_difference, steer_difference
from evenhand.statistics.intervals import Floats, wilson

if TYPE_CHECKING:
    import torch

SHRINKAGE = 1e-3
"""Of the covariance of states. Some of their directions have no variance but that of rounding (a
layer norm leaves one), which LEACE would amplify by its inverse.
"""
Fit = Callable[..., AffineMap]
METHODS: Mapping[str, Fit] = {
    "leace": partial(leace, shrinkage=SHRINKAGE),
    "project": project_difference,
    "steer": steer_difference,
}
"""The map of each method, fitted on states and genders (0 male, 1 female)."""

Pair = tuple[str, str]
"""A text with its gendered words male, and with them female."""

PACKAGE = "sentence_transformers.models"
MINIMUM = 10
"""Pairs that are needed to fit, and again to test."""
FOLDS = 5
ROUNDING = 1e-3
"""Dimensions that vary less than by this share of the median are not brought to unit variance for
a probe, which would otherwise read the rounding errors of an almost constant dimension.
"""
MASKED = 0.15
"""The share of masked tokens where a masked model is fitted."""
TOKENS = 4096
"""Tokens per batch."""

Changed = TypeVar("Changed", bound=MaskedModel | CausalModel | SentenceEncoder)
Kernel = Literal["linear", "rbf"]
KERNELS: tuple[tuple[Kernel, str, str], ...] = (
    ("linear", "Linear probe", "Does a linear classifier find a text's gender in the states?"),
    ("rbf", "Non-linear probe", "Does a support vector machine with an RBF kernel find it?"),
)
PROBES = {
    kernel: Declaration(
        name=f"states_{kernel}",
        subjects=("masked", "causal", "encoder"),
        label=label,
        question=question,
        formula="share right in five-fold cross-validation over pairs of texts",
        source="Belrose et al. (2023)",
        ideal=0.5,
        worse="higher",
    )
    for kernel, label, question in KERNELS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSettings:
    """The options of `mitigate_model`, as commands have them."""

    method: Literal["leace", "project", "steer"] = option(
        "leace",
        help="leace: erase gender by the smallest change; project: remove the difference of the "
        "means; steer: add it.",
    )
    layers: str = option(
        "all", metavar="LIST", help="The layers, such as 6 or 2,4-6; last, or all of them."
    )
    held_out: float = option(
        0.4, above=0, below=1, help="The share of the texts that is not fitted on but tested on."
    )


class States(NamedTuple):
    """Token states by layer (tokens, width), and the number of the text of each token."""

    by_layer: dict[int, NDArray[np.float32]]
    texts: NDArray[np.int64]

    def means(self, layer: int) -> Floats:
        """The mean state of each text (texts, width)."""
        counts = np.bincount(self.texts)
        sums = np.zeros((len(counts), self.by_layer[layer].shape[1]))
        np.add.at(sums, self.texts, self.by_layer[layer])
        return sums / counts[:, None]


def gender_pairs(texts: Iterable[str]) -> list[Pair]:
    """Each text with all its gendered words male, and with all of them female.

    Texts without gendered words are left out.

    Examples
    --------
    >>> gender_pairs(["She met her boss.", "It rained."])
    [('He met his boss.', 'She met her boss.')]

    """
    from evenhand.text.rewrite import rewrite_all
    from evenhand.text.rewrite.swap import Swap

    given = list(texts)
    female = rewrite_all(given, Swap(direction="male-to-female"))
    male = rewrite_all(given, Swap(direction="female-to-male"))
    pairs = ((m.text, f.text) for m, f in zip(male, female, strict=True) if m.edits or f.edits)
    return [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]


def built_in_pairs(count: int = 400, *, seed: int = 0) -> list[Pair]:
    """Sentences about people with a profession, in random order: he, this man, my father …"""
    from evenhand.models.designs import design

    texts = [sentence.text for sentence in design().sentences]
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[i] for i in chosen]


def hidden_states(
    model: MaskedModel | CausalModel,
    texts: Sequence[str],
    layers: Iterable[int],
    *,
    progress: Progress | None = None,
) -> States:
    """Compute the states of the tokens of texts after layers.

    Parameters
    ----------
    model : MaskedModel
        Masked or causal.
    texts : sequence of str
    layers : iterable of int
        Counted from 1. Maps of the model at these layers are applied.
    progress : callable, optional
        Called with the texts done and all texts.

    Returns
    -------
    States
        Of all tokens, but without the token that is put before a text for a causal model.

    """
    _check_model(model)
    rows = _token_rows(model, texts)
    states = _row_states(model, rows, _check_layers(model, layers), progress)
    if isinstance(model, MaskedModel) or model.begin is None:
        return states
    own = np.diff(states.texts, prepend=-1) == 0
    return States({layer: x[own] for layer, x in states.by_layer.items()}, states.texts[own])


def _row_states(
    model: MaskedModel | CausalModel,
    rows: Sequence[Sequence[int]],
    layers: Iterable[int],
    progress: Progress | None = None,
) -> States:
    """The states of all tokens of rows, row after row in order of length."""
    recorders = {layer: _Recorder() for layer in layers}
    order = np.argsort([len(row) for row in rows], kind="stable")
    lengths = [len(rows[i]) for i in order]
    for part in batches(lengths, TOKENS):
        _record(model, [rows[i] for i in order[part]], recorders)
        if progress is not None:
            progress(part.stop, len(order))
    numbers = np.repeat(order, lengths)
    return States({layer: each.states() for layer, each in recorders.items()}, numbers)


class _Recorder:
    """A map that changes nothing and records what it sees."""

    def __init__(self) -> None:
        self.parts: list[NDArray[np.float32]] = []

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        self.parts.append(states.detach().reshape(-1, states.shape[-1]).float().cpu().numpy())
        return states

    def states(self) -> NDArray[np.float32]:
        return np.concatenate(self.parts)


def _record(
    model: MaskedModel | CausalModel,
    rows: Sequence[Sequence[int]],
    recorders: Mapping[int, StateMap],
) -> None:
    """Run the model on rows in order of length, the recorders after their layers."""
    import torch

    last = max(recorders)  # later layers are not run where they need not be
    if isinstance(model, MaskedModel):
        stages = model.stages()
        ids = np.concatenate([np.array(row) for row in rows])
        lengths = np.array([len(row) for row in rows])
        with torch.inference_mode(), ExitStack() as stack:
            if stages is None:
                stack.enter_context(hooked(model.core, recorders))
            else:
                stages = map_stages(stages[:last], recorders)
            ForwardPass(model.core, ids, lengths, stages).all_states()
        return
    decoder = model.decoder
    if decoder is not None:
        maps = dict(decoder.maps)
        for layer, recorder in recorders.items():
            maps[layer] = _then(maps.get(layer), recorder)
        run_rows(replace(decoder, layers=decoder.layers[:last], maps=maps), rows)
        return
    with hooked(model.network, recorders):
        for row in rows:
            model.logits(np.array(row))


def _then(first: StateMap | None, second: StateMap) -> StateMap:
    return second if first is None else lambda states: second(first(states))


def _token_rows(model: MaskedModel | CausalModel, texts: Sequence[str]) -> list[list[int]]:
    """The token ids of each text as the model reads it."""
    if isinstance(model, MaskedModel):
        coded, before = encode(model, texts), []
    else:
        coded, before = model.encode(texts), [] if model.begin is None else [model.begin]
    rows = [[*before, *each.ids] for each in coded]
    for text, row, each in zip(texts, rows, coded, strict=True):
        if len(row) > model.longest:
            raise InputError(
                f"'{text[:60]}': longer than model '{model.name}' takes ({model.longest:,} tokens)"
            )
        if not each.ids:
            raise InputError(f"'{text[:60]}': expected a text of some tokens, got none")
    return rows


def _with_masks(model: MaskedModel, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Pairs of rows with some of their tokens masked, the same ones in both of a pair."""
    masked = []
    for number, row in enumerate(rows):
        draws = np.random.default_rng(number // 2).random(len(row))[1:-1]
        hidden = draws <= max(MASKED, draws.min(initial=1.0))
        ids = np.array(row)
        ids[1:-1][hidden] = model.tokenizer.mask_token_id
        masked.append(ids.tolist())
    return masked


def _check_model(model: object) -> None:
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(
            "model: expected a masked or causal language model with layers, got "
            f"{type(model).__name__}"
        )


def _check_layers(model: MaskedModel | CausalModel, layers: Iterable[int]) -> list[int]:
    chosen = sorted(set(layers))
    wrong = next((layer for layer in chosen if not 1 <= layer <= model.layers), None)
    if not chosen or wrong is not None:
        raise InputError(
            f"layers: expected some of 1 to {model.layers}, as model '{model.name}' has, got "
            f"{'none' if wrong is None else wrong}"
        )
    return chosen


def parse_layers(text: str, count: int) -> list[int]:
    """The layers that a text names, of a model of `count` layers.

    >>> parse_layers("2,4-6", 12), parse_layers("last", 12)
    ([2, 4, 5, 6], [12])
    """
    if text == "all":
        return list(range(1, count + 1))
    if text == "last":
        return [count]
    layers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if found is None:
            raise InputError(f"layers: expected all, last or a list such as 2,4-6, got '{text}'")
        layers += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not layers or min(layers) < 1 or max(layers) > count:
        raise InputError(f"layers: expected some of 1 to {count}, got '{text}'")
    return sorted(set(layers))


def fit_maps(
    model: MaskedModel | CausalModel,
    pairs: Sequence[Pair],
    method: str = "leace",
    layers: Iterable[int] | None = None,
    *,
    progress: Progress | None = None,
) -> LayerMaps:
    """Fit a map of each layer on texts in two versions, one layer after the other.

    Parameters
    ----------
    model : MaskedModel
        Masked or causal, without maps.
    pairs : sequence of (str, str)
        Each text male and female, see `gender_pairs`.
    method : {"leace", "project", "steer"}
    layers : iterable of int, optional
        Counted from 1; by default all. A layer is fitted with the maps of those before it in place.
    progress : callable, optional
        Called with the layers done and all layers.

    Returns
    -------
    LayerMaps
        `model.with_maps(maps)` is the changed model, `save_model` saves it.

    Notes
    -----
    All tokens of a text count, special ones too, together as much as those of any other text. So
    the covariance of gender with the mapped states is 0, and also that with their mean over each
    text. Masked models also see each text with 15 % of its tokens masked: a map is small only where
    it was fitted, and it is applied at every token. `steer` moves the states
    of all texts from male to female; scaled by a negative number, the other way.

    """
    _check_model(model)
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    if len(pairs) < MINIMUM:
        raise InputError(f"pairs: expected {MINIMUM} texts or more to fit on, got {len(pairs)}")
    chosen = _check_layers(model, range(1, model.layers + 1) if layers is None else layers)
    rows = _token_rows(model, [text for pair in pairs for text in pair])
    if isinstance(model, MaskedModel):
        rows = [*rows, *_with_masks(model, rows)]
    maps: dict[int, AffineMap] = {}
    about = {"method": method, "strength": 1.0, "concept": "gender", "pairs": len(pairs)}
    changed = model
    for done, layer in enumerate(chosen, start=1):
        states = _row_states(changed, rows, [layer])
        counts = np.bincount(states.texts)
        maps[layer] = METHODS[method](
            states.by_layer[layer], states.texts % 2, weights=1 / counts[states.texts]
        )
        if done < len(chosen):
            changed = model.with_maps(LayerMaps(maps, about))
        if progress is not None:
            progress(done, len(chosen))
    return LayerMaps(maps, {**about, "model": model.name, "fingerprint": model.fingerprint})


def probe_states(states: Floats, name: str, kernel: Kernel, run: Run = Run()) -> Measurement:
    """Measure how often a classifier finds the gender of a text in its mean state.

    Parameters
    ----------
    states : array (2 × pairs, width)
        The two versions of each text, one after the other.
    name : str
        Of the query.
    kernel : {"linear", "rbf"}
        Logistic regression, or a support vector machine with an RBF kernel.
    run : Run

    Returns
    -------
    Measurement
        The accuracy on pairs that the classifier was not trained on.

    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.svm import SVC

    labels, groups = np.arange(len(states)) % 2, np.arange(len(states)) // 2
    pairs = len(states) // 2
    probe = LogisticRegression(max_iter=10_000) if kernel == "linear" else SVC(kernel="rbf")
    folds = GroupKFold(FOLDS, shuffle=True, random_state=run.seed)
    spread = states.std(axis=0)
    scaled = (states - states.mean(axis=0)) / np.maximum(spread, ROUNDING * np.median(spread))
    predicted = cross_val_predict(probe, scaled, labels, groups=groups, cv=folds)
    hits = (predicted == labels).reshape(-1, 2).mean(axis=1)
    _, low, high = wilson(round(float(hits.sum())), pairs, run.prob)
    value = float(hits.mean())
    without = (hits.sum() - hits) / (pairs - 1)
    return PROBES[kernel].result(
        run,
        name,
        (value, min(low, value), max(high, value)),
        n=pairs,
        interval="Wilson over pairs of texts, the training texts held fixed",
        items=Items(
            {"word": [f"pair {i + 1}" for i in range(pairs)], "score": hits, "without": without}
        ),
        details={"kernel": kernel, "folds": FOLDS},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMitigation:
    """A changed model, with its measures, what probes find in its states and its perplexity."""

    model: MaskedModel | CausalModel | SentenceEncoder = field(repr=False)
    maps: LayerMaps | VectorMap
    measures: tuple[Comparison, ...] = field(repr=False)
    hiding: tuple[Comparison, ...] = field(repr=False)
    utility: tuple[Comparison, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    def to_dict(self, *, items: bool = False) -> dict[str, Any]:
        """The JSON view; the items of the results only on request."""
        parts = {"measures": self.measures, "hiding": self.hiding, "utility": self.utility}
        return {
            "maps": {**self.maps.about, "layers": list(getattr(self.maps, "layers", ()))},
            **{name: [each.to_dict(items=items) for each in part] for name, part in parts.items()},
            "notes": list(self.notes),
        }


def mitigate_model(
    model: MaskedModel | CausalModel,
    texts: Sequence[str] | None = None,
    method: str = "leace",
    *,
    layers: str = "all",
    strengths: Sequence[float] = (1.0,),
    held_out: float = 0.4,
    metrics: Sequence[tuple[Any, Any]] = (),
    utility: Sequence[str] | None = None,
    run: Run = Run(),
) -> list[ModelMitigation]:
    """Change the layers of a model so that gender is hidden, then measure again.

    Parameters
    ----------
    model : MaskedModel
        Masked or causal.
    texts : sequence of str, optional
        Texts with gendered words; by default built-in sentences about professions.
    method : {"leace", "project", "steer"}
        See `fit_maps`.
    layers : str
        Such as "6" or "2,4-6"; "last" or "all".
    strengths : sequence of float
        One result for each; 1 is the map as fitted.
    held_out : float
        The share of texts that is tested on.
    metrics : sequence of (instrument, material)
        What to measure before and after.
    utility : sequence of str, optional
        Texts for perplexity; by default those of `texts` that are held out.
    run : Run

    Returns
    -------
    list of ModelMitigation

    Examples
    --------
    >>> import evenhand as eh
    >>> mini, useful = eh.models.load("mini"), ["It rained.", "The book is here."]
    >>> [done] = eh.models.mitigate_model(mini, layers="6", utility=useful)
    >>> before, after = done.hiding[0].before, done.hiding[0].after
    >>> before.value > 0.9 > after.value
    True

    """
    _check_model(model)
    chosen = parse_layers(layers, model.layers)
    fitted, test = _split(texts, method, strengths, held_out, run.seed)
    read = test if utility is None else list(utility)
    maps = fit_maps(model, fitted, method, chosen, progress=run.progress)
    tokens = sum(map(len, _token_rows(model, [text for pair in fitted for text in pair])))
    probed = sorted({chosen[0], chosen[-1], model.layers})
    perplexity = lookup(model.subject_kind, "perplexity")()

    def states(subject: MaskedModel | CausalModel) -> dict[str, Floats]:
        known = hidden_states(subject, test, probed)
        return {f"layer {layer}": known.means(layer) for layer in probed}

    return _measure_changes(
        model,
        [(scaled, model.with_maps(scaled)) for scaled in map(maps.scaled, strengths)],
        metrics,
        states=states,
        usefulness=lambda subject: perplexity.measure(subject, read, run),
        cost=compare,
        notes=_notes(tokens, "tokens", model.dim),
        run=run,
    )


def _measure_changes(
    model: Changed,
    changes: Sequence[tuple[LayerMaps | VectorMap, Changed]],
    metrics: Sequence[tuple[Any, Any]],
    *,
    states: Callable[[Changed], Mapping[str, Floats]],
    usefulness: Callable[[Changed], Measurement],
    cost: Callable[[Measurement, Measurement], Comparison],
    notes: tuple[str, ...],
    run: Run,
) -> list[ModelMitigation]:
    """Measure a model and its changed versions, given with their maps, and compare them.

    `states` gives what probes see, by name, and `cost` compares the two results of `usefulness`.
    """

    def measure(subject: Changed) -> tuple[list[Measurement], list[Measurement], Measurement]:
        probes = [
            probe_states(seen, name, kernel, run)
            for name, seen in states(subject).items()
            for kernel in PROBES
        ]
        measured: list[Measurement] = []
        for instrument, material in metrics:
            result = instrument.measure(subject, material, run)
            measured += result if isinstance(result, list) else [result]
        return measured, probes, usefulness(subject)

    measures, probes, useful = measure(model)
    results = []
    for maps, changed in changes:
        after = measure(changed)
        results.append(
            ModelMitigation(
                model=changed,
                maps=maps,
                measures=tuple(map(compare, measures, after[0])),
                hiding=tuple(map(compare, probes, after[1])),
                utility=(cost(useful, after[2]),),
                notes=notes,
            )
        )
    return results


def _notes(count: int, unit: str, dim: int) -> tuple[str, ...]:
    """A note where a map is fitted on too few tokens or texts."""
    if count >= 5 * dim:
        return ()
    return (
        f"fitted on {count:,} {unit} for {dim} dimensions: with fewer than five {unit} per "
        "dimension much of what is hidden on these texts shows on others",
    )


def _split(
    texts: Sequence[str] | None,
    method: str,
    strengths: Sequence[float],
    held_out: float,
    seed: int,
) -> tuple[list[Pair], list[str]]:
    """The pairs to fit on, and the texts to test on, pair after pair."""
    if not 0 < held_out < 1:
        raise InputError(f"held_out: expected a share between 0 and 1, got {held_out}")
    if not strengths:
        raise InputError("strength: expected one number or more, got none")
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    pairs = built_in_pairs(seed=seed) if texts is None else gender_pairs(texts)
    order = np.random.default_rng(seed).permutation(len(pairs))
    tested = round(len(pairs) * held_out)
    if min(tested, len(pairs) - tested) < MINIMUM:
        raise InputError(
            f"texts: expected {2 * MINIMUM} or more with gendered words, {MINIMUM} to fit on and "
            f"{MINIMUM} to test on, got {len(pairs)} at held_out {held_out:g}"
        )
    test = [text for i in order[:tested] for text in pairs[i]]
    return [pairs[i] for i in order[tested:]], test


@dataclass(frozen=True, eq=False)
class VectorMap:
    """An affine map of the vectors of a sentence encoder, and how it was fitted."""

    affine: AffineMap = field(repr=False)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        strength = self.about["strength"]
        how = "" if strength == 1 else f", strength {strength:g}"
        return f"{self.about['method']} of the vectors{how}"


def mitigate_encoder(
    encoder: SentenceEncoder,
    texts: Sequence[str] | None = None,
    method: str = "leace",
    *,
    strengths: Sequence[float] = (1.0,),
    held_out: float = 0.4,
    metrics: Sequence[tuple[Any, Any]] = (),
    utility: Sequence[str] | None = None,
    run: Run = Run(),
) -> list[ModelMitigation]:
    """Change the vectors of a sentence encoder so that gender is hidden, then measure again.

    Parameters are those of `mitigate_model`. `utility` are texts whose cosines are compared before
    and after; by default those that are held out.

    Notes
    -----
    The map is fitted on vectors of texts in two versions, before they get unit length where the
    encoder does that, and becomes the last linear map of the encoder: `save_model` saves it in the
    layout of sentence-transformers, as a module that other programs apply too. After unit length
    the covariance with gender is small, not 0.
    """
    from evenhand.vectors.store import Vectors
    from evenhand.vectors.utility import cosine_rank_correlation

    if not isinstance(encoder, SentenceEncoder):
        raise InputError(f"encoder: expected a sentence encoder, got {type(encoder).__name__}")
    fitted, test = _split(texts, method, strengths, held_out, run.seed)
    compared = list(dict.fromkeys(test if utility is None else utility))
    vectors = replace(encoder, normalize=False).encode(
        [text for pair in fitted for text in pair], cache=run.cache
    )
    affine = METHODS[method](vectors, np.arange(len(vectors)) % 2)

    def states(subject: SentenceEncoder) -> dict[str, Floats]:
        return {"vectors": subject.encode(test, cache=run.cache).astype(np.float64)}

    def cosines(subject: SentenceEncoder) -> Measurement:
        first, second = (
            Vectors.from_arrays(compared, each.encode(compared, cache=run.cache), name=each.name)
            for each in (encoder, subject)
        )
        kept = cosine_rank_correlation(first, second, seed=run.seed, prob=run.prob)
        return replace(kept, query="pairs of texts")

    def cost(before: Measurement, after: Measurement) -> Comparison:
        return Comparison(
            before=before,
            after=after,
            change=Estimate.of((after.value - 1, after.low - 1, after.high - 1), run.prob),
            interval=after.interval,
            paired=after.n,
        )

    changes = []
    for strength in strengths:
        about = {"method": method, "strength": strength, "pairs": len(fitted)}
        scaled = affine.scaled(strength)
        changes.append((VectorMap(scaled, about), with_vector_map(encoder, scaled)))
    return _measure_changes(
        encoder,
        changes,
        metrics,
        states=states,
        usefulness=cosines,
        cost=cost,
        notes=_notes(len(vectors), "texts", encoder.dim),
        run=run,
    )


def with_vector_map(encoder: SentenceEncoder, affine: AffineMap) -> SentenceEncoder:
    """The encoder with an affine map as its last linear map, before unit length."""
    import torch

    weight, bias = (
        torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32))
        for part in (affine.matrix, affine.shift)
    )
    return replace(encoder, dense=(*encoder.dense, PooledDense(weight, bias, "identity")))


def save_model(
    model: MaskedModel | CausalModel | SentenceEncoder,
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
) -> None:
    """Save a copy of a model with its maps into a new folder, from which it loads.

    Parameters
    ----------
    model : MaskedModel or SentenceEncoder
        With maps.
    source : str or path
        What the model was loaded from. Its files are copied; a GGUF file is written as a folder in
        the transformers layout.
    folder : str or path
        A folder that does not exist yet or is empty.

    """
    maps = None if isinstance(model, SentenceEncoder) else model.maps
    if maps is None and not isinstance(model, SentenceEncoder):
        raise InputError(f"model '{model.name}': expected a model with layer maps, got none")
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(target, "expected a new or an empty folder, got one with files")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=target.parent))
    try:
        origin = locate(source).path
        if isinstance(model, SentenceEncoder):
            _save_encoder(model, origin, partial)
        elif origin.is_file():
            with quiet():
                model.network.save_pretrained(partial)
            model.tokenizer.save_pretrained(partial)
        else:
            for pattern in (*DATA_FILES, *PICKLED, "*.jinja"):
                for path in origin.glob(pattern):
                    if path.is_file() and path.name != FILE:
                        shutil.copyfile(path, partial / path.name)
        if maps is not None:
            maps.save(partial)
        (partial / "README.md").write_text(
            _card(model.name, public_name(source), maps), encoding="utf-8"
        )
        partial.chmod(0o755)
        if target.exists():
            target.rmdir()
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _save_encoder(encoder: SentenceEncoder, origin: Path, folder: Path) -> None:
    """Copy an encoder and add its last linear map as a module of sentence-transformers."""
    from safetensors.torch import save_file

    if not (origin / MODULES).is_file():
        raise InputError(
            f"model '{encoder.name}': expected a folder of sentence-transformers with {MODULES} to "
            "copy, got none"
        )
    shutil.copytree(origin, folder, dirs_exist_ok=True)
    modules = parse_json((folder / MODULES).read_bytes(), folder / MODULES)
    at = len(modules) - (1 if encoder.normalize else 0)
    name = f"{len(modules)}_Dense"
    weight, bias, _ = encoder.dense[-1]
    modules.insert(at, {"name": "", "path": name, "type": f"{PACKAGE}.Dense"})
    for number, module in enumerate(modules):
        module.update(idx=number, name=str(number))
    save_json(folder / MODULES, modules)
    (folder / name).mkdir()
    settings = {
        "in_features": len(weight),
        "out_features": len(weight),
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    save_json(folder / name / "config.json", settings)
    stored = {"linear.weight": weight} | ({} if bias is None else {"linear.bias": bias})
    save_file(stored, folder / name / "model.safetensors")


def _card(name: str, source: str, maps: LayerMaps | None) -> str:
    if maps is None:
        return (
            f"# {name} with an affine map\n\nA copy of `{source}` whose last linear map, fitted by "
            "Evenhand, hides gender from linear classifiers.\n"
        )
    return (
        f"# {name}, {maps}\n\nA copy of `{source}` with affine maps of its states, fitted by "
        f"Evenhand ({maps.about.get('pairs', '?')} texts in a male and a female version). The maps "
        f"are in `{FILE}` and are applied where Evenhand loads this folder; other programs ignore "
        "them.\n"
    )
