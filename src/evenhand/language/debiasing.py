"""Reduce gender bias within a language model: affine maps of its states, then measure again.

A map is fitted on texts in two versions, all of whose gendered words are male or female. At each
layer it sees the states of all their tokens, and the gender of the text is the concept: LEACE
erases it by the smallest change, `project` removes the difference of the two means, and `steer`
adds it. What changed is measured on texts that were not fitted on: whether a probe still finds the
gender, and how well the model still predicts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.causal.model import Model as CausalModel
from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.files import PARTIAL, parse_json, public_name, save_json
from evenhand.instruments import Declaration, Progress, Run, compare, instruments, option
from evenhand.language.encoders import MODULES, Dense, SentenceEncoder
from evenhand.masked.layers import FILE, LayerMaps, StateMap, hooked
from evenhand.masked.model import Model as MaskedModel
from evenhand.masked.model import quiet
from evenhand.masked.sources import DATA_FILES, PICKLED, fetch
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.erasure import AffineMap, leace, project_difference, steer_difference
from evenhand.statistics.intervals import Floats, wilson

__all__ = [
    "METHODS",
    "LayerSettings",
    "ModelMitigation",
    "built_in_pairs",
    "fit_maps",
    "gender_pairs",
    "hidden_states",
    "mitigate_encoder",
    "mitigate_model",
    "probe_states",
    "save_model",
]

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
"""What is fitted on states and genders (0 male, 1 female)."""

Pair = tuple[str, str]
"""A text with its gendered words male, and with them female."""

PACKAGE = "sentence_transformers.models"
MINIMUM = 10
"""Pairs that are needed to fit, and again to test."""
FOLDS = 5
ROUNDING = 1e-3
"""Dimensions that vary less than by this share of the median are not brought to unit variance for
a probe: of a dimension that is constant but for rounding it would read what nobody else can.
"""
MASKED = 0.15
"""The share of masked tokens where a masked model is fitted."""
TOKENS = 4096
"""Tokens per batch."""

Kernel = Literal["linear", "rbf"]
KERNELS: tuple[tuple[Kernel, str, str], ...] = (
    ("linear", "Linear probe", "Does a linear classifier find a text's gender in the states?"),
    ("rbf", "Non-linear probe", "Does a support vector machine with an RBF kernel find it?"),
)
PROBES = {
    kernel: Declaration(
        name=f"states_{kernel}",
        subject="language",
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
    from evenhand.masked.designs import design

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
    model : Model
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
    model: Any,
    rows: Sequence[Sequence[int]],
    layers: Iterable[int],
    progress: Progress | None = None,
) -> States:
    """The states of all tokens of rows, row after row in order of length."""
    recorders = {layer: _Recorder() for layer in layers}
    order = np.argsort([len(row) for row in rows], kind="stable")
    starts = np.cumsum([0, *(len(rows[i]) for i in order)])
    begin = 0
    while begin < len(order):
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + TOKENS, "right")) - 1)
        _record(model, [rows[i] for i in order[begin:end]], recorders)
        begin = end
        if progress is not None:
            progress(begin, len(order))
    numbers = np.repeat(order, np.diff(starts))
    return States({layer: each.states() for layer, each in recorders.items()}, numbers)


class _Recorder:
    """A map that changes nothing and records what it sees."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def __call__(self, states: Any) -> Any:
        self.parts.append(states.detach().reshape(-1, states.shape[-1]).float().cpu().numpy())
        return states

    def states(self) -> NDArray[np.float32]:
        return np.concatenate(self.parts)


def _record(model: Any, rows: Sequence[Sequence[int]], recorders: Mapping[int, StateMap]) -> None:
    """Run the model on rows in order of length, the recorders after their layers."""
    import torch

    last = max(recorders)  # later layers are not run where they need not be
    if isinstance(model, MaskedModel):
        from evenhand.masked.forward import ForwardPass, map_stages

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
        from evenhand.causal.scoring import run_rows

        own = decoder.maps
        joined = {layer: _then(own.get(layer), each) for layer, each in recorders.items()}
        maps = {**own, **joined}
        run_rows(replace(decoder, layers=decoder.layers[:last], maps=maps), rows)
        return
    with hooked(model.network, recorders):
        for row in rows:
            model.logits(np.array(row))


def _then(first: StateMap | None, second: StateMap) -> StateMap:
    return second if first is None else lambda states: second(first(states))


def _token_rows(model: Any, texts: Sequence[str]) -> list[list[int]]:
    """The token ids of each text as the model reads it."""
    before: list[int] = []
    if isinstance(model, MaskedModel):
        from evenhand.masked.scoring import encode

        coded = encode(model, texts)
    else:
        coded = model.encode(texts)
        before = [] if model.begin is None else [model.begin]
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


def _check_model(model: Any) -> None:
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(
            "model: expected a masked or causal language model with layers, got "
            f"{type(model).__name__}"
        )


def _check_layers(model: Any, layers: Iterable[int]) -> list[int]:
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
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise InputError(f"layers: expected all, last or a list such as 2,4-6, got '{text}'")
        layers += range(int(first), int(last if dash else first) + 1)
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
    model : Model
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

    model: Any = field(repr=False)
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
    model : Model
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
    >>> mini, useful = eh.masked.load("mini"), ["It rained.", "The book is here."]
    >>> [done] = eh.language.mitigate_model(mini, layers="6", utility=useful)
    >>> before, after = done.hiding[0].before, done.hiding[0].after
    >>> before.value > 0.9 > after.value
    True

    """
    _check_model(model)
    chosen = parse_layers(layers, model.layers)
    fitted, test = _split(texts, method, strengths, held_out, run.seed)
    cost = list(utility) if utility is not None else test
    maps = fit_maps(model, fitted, method, chosen, progress=run.progress)
    notes = []
    tokens = sum(map(len, _token_rows(model, [text for pair in fitted for text in pair])))
    if tokens < 5 * model.dim:
        notes.append(
            f"fitted on {tokens:,} tokens for {model.dim} dimensions: with fewer than five tokens "
            "per dimension much of what is hidden on these texts shows on others"
        )
    probed = sorted({chosen[0], chosen[-1], model.layers})

    def measure(subject: Any) -> tuple[list[Measurement], list[Measurement], list[Measurement]]:
        measured = _measured(metrics, subject, run)
        states = hidden_states(subject, test, probed)
        probes = [
            probe_states(states.means(layer), f"layer {layer}", kernel, run)
            for layer in probed
            for kernel in PROBES
        ]
        perplexity = instruments(model.subject_kind)["perplexity"]()
        return measured, probes, [perplexity.measure(subject, cost, run)]

    before = measure(model)
    results = []
    for strength in strengths:
        scaled = maps.scaled(strength)
        changed = model.with_maps(scaled)
        after = measure(changed)
        measures, hiding, lost = map(_compared, before, after)
        results.append(
            ModelMitigation(
                model=changed,
                maps=scaled,
                measures=measures,
                hiding=hiding,
                utility=lost,
                notes=tuple(notes),
            )
        )
    return results


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
    notes = []
    if len(vectors) < 5 * encoder.dim:
        notes.append(
            f"fitted on {len(vectors):,} texts for {encoder.dim} dimensions: with fewer than five "
            "per dimension much of what is hidden on these texts shows on others"
        )

    def measure(
        subject: SentenceEncoder,
    ) -> tuple[list[Measurement], list[Measurement], Measurement]:
        measured = _measured(metrics, subject, run)
        states = subject.encode(test, cache=run.cache).astype(np.float64)
        probes = [probe_states(states, "vectors", kernel, run) for kernel in PROBES]
        first, second = (
            Vectors.from_arrays(compared, each.encode(compared, cache=run.cache), name=each.name)
            for each in (encoder, subject)
        )
        cosines = cosine_rank_correlation(first, second, seed=run.seed, prob=run.prob)
        return measured, probes, replace(cosines, query="pairs of texts")

    before = measure(encoder)
    results = []
    for strength in strengths:
        scaled = affine.scaled(strength)
        about = {"method": method, "strength": strength, "pairs": len(fitted)}
        changed = with_vector_map(encoder, scaled)
        after = measure(changed)
        correlation = after[2]
        ends = (correlation.value - 1, correlation.low - 1, correlation.high - 1)
        cost = Comparison(
            before=before[2],
            after=correlation,
            change=Estimate.of(ends, run.prob),
            interval=correlation.interval,
            paired=correlation.n,
        )
        results.append(
            ModelMitigation(
                model=changed,
                maps=VectorMap(scaled, about),
                measures=_compared(before[0], after[0]),
                hiding=_compared(before[1], after[1]),
                utility=(cost,),
                notes=tuple(notes),
            )
        )
    return results


def with_vector_map(encoder: SentenceEncoder, affine: AffineMap) -> SentenceEncoder:
    """The encoder with an affine map as its last linear map, before unit length."""
    import torch

    weight, bias = (
        torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32))
        for part in (affine.matrix, affine.shift)
    )
    return replace(encoder, dense=(*encoder.dense, Dense(weight, bias, "identity")))


def _measured(metrics: Sequence[tuple[Any, Any]], subject: Any, run: Run) -> list[Measurement]:
    measured: list[Measurement] = []
    for instrument, material in metrics:
        result = instrument.measure(subject, material, run)
        measured += result if isinstance(result, list) else [result]
    return measured


def _compared(
    before: Sequence[Measurement], after: Sequence[Measurement]
) -> tuple[Comparison, ...]:
    return tuple(compare(*each) for each in zip(before, after, strict=True))


def save_model(
    model: MaskedModel | CausalModel | SentenceEncoder,
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
) -> None:
    """Save a copy of a model with its maps into a new folder, from which it loads.

    Parameters
    ----------
    model : Model or SentenceEncoder
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
        with ExitStack() as stack:
            origin = _origin(os.fspath(source), stack)
            if isinstance(model, SentenceEncoder):
                _save_encoder(model, origin, partial)
            elif origin is None:
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
        (partial / "README.md").write_text(_card(model, source), encoding="utf-8")
        partial.chmod(0o755)
        if target.exists():
            target.rmdir()
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _origin(name: str, stack: ExitStack) -> Path | None:
    """The folder of a model, None if it is a file."""
    from evenhand.causal.model import EMBEDDED as CAUSAL
    from evenhand.masked.model import EMBEDDED as MASKED

    if name in (*MASKED, *CAUSAL):
        return stack.enter_context(resources.as_file(resources.files("evenhand.assets") / name))
    path = fetch(name[3:]) if name.startswith("hf:") else Path(name)
    return path if path.is_dir() else None


def _save_encoder(encoder: SentenceEncoder, origin: Path | None, folder: Path) -> None:
    """Copy an encoder and add its last linear map as a module of sentence-transformers."""
    from safetensors.torch import save_file

    if origin is None or not (origin / MODULES).is_file():
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


def _card(model: Any, source: str | os.PathLike[str]) -> str:
    if isinstance(model, SentenceEncoder):
        return (
            f"# {model.name} with an affine map\n\n"
            f"A copy of `{public_name(source)}` whose last linear map, fitted by Evenhand, hides "
            "gender from linear classifiers.\n"
        )
    return (
        f"# {model.name}, {model.maps}\n\n"
        f"A copy of `{public_name(source)}` with affine maps of its states, fitted by Evenhand "
        f"({model.maps.about.get('pairs', '?')} texts in a male and a female version). The maps "
        f"are in `{FILE}` and are applied where Evenhand loads this folder; other programs ignore "
        "them.\n"
    )
