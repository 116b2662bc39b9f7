"""Bias while a language model is trained: a callback for the Trainer of transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from evenhand.errors import InputError
from evenhand.instruments import compare, lookup, measure
from evenhand.results import Comparison, Measurement, Measurements
from evenhand.wording import slug

if TYPE_CHECKING:
    import pandas as pd

KINDS = {
    "ForMaskedLM": "masked",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
}
"""The kind of a network by the end of its class's name."""


def log_bias(
    trainer: Any,
    metrics: str | Sequence[str],
    material: object = None,
    *,
    every: int = 500,
    seed: int = 0,
    prob: float = 0.95,
    options: Mapping[str, Any] | None = None,
) -> BiasCallback:
    """Measure the model of a Trainer at regular steps, and log values with their intervals.

    Parameters
    ----------
    trainer : transformers.Trainer
        With a masked or causal language model and its tokenizer (`processing_class`).
    metrics : str or sequence of str
    material : optional
        As for `evenhand.measure`.
    every : int
        Steps of the optimiser between measurements. The first is before training, the last after
        it.
    seed, prob, options
        As for `evenhand.measure`.

    Returns
    -------
    BiasCallback
        Already added to the trainer.

    Notes
    -----
    Everything goes through `trainer.log`, so that loggers (TensorBoard, Weights & Biases) draw
    `bias/METRIC/QUERY` with `low` and `high` beside the loss. Measuring uses evaluation mode and
    leaves the random state as it was: training is the same with and without it.

    """
    if every < 1:
        raise InputError(f"every: expected 1 or more, got {every}")
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    kind = _kind(trainer.model)
    for name in names:
        lookup(kind, name)
    if getattr(trainer, "processing_class", None) is None:
        raise InputError("trainer: expected a tokenizer (processing_class), got none")
    settings = {"seed": seed, "prob": prob, "options": options}
    callback = BiasCallback(trainer, names, material, every, settings)
    trainer.add_callback(callback)
    return callback


@dataclass(eq=False)
class BiasCallback(TrainerCallback):
    """Measures at regular steps; see `log_bias`.

    Attributes
    ----------
    history : list of (int, float or None, Measurements)
        Steps, the training loss that was logged last, and what was measured.

    """

    trainer: Any
    metrics: Sequence[str]
    material: object
    every: int
    settings: Mapping[str, Any]
    history: list[tuple[int, float | None, Measurements]] = field(default_factory=list)
    _loss: float | None = None

    def on_train_begin(self, args: object, state: object, control: object, **_: object) -> None:
        self._measure(state, control)

    def on_step_end(self, args: object, state: Any, control: Any, **_: object) -> None:
        if state.global_step % self.every == 0:
            self._measure(state, control)

    def on_train_end(self, args: object, state: Any, control: Any, **_: object) -> None:
        if not self.history or self.history[-1][0] != state.global_step:
            self._measure(state, control)

    def on_log(
        self,
        args: object,
        state: object,
        control: object,
        logs: dict[str, Any] | None = None,
        **_: object,
    ) -> None:
        loss = (logs or {}).get("loss")
        self._loss = self._loss if loss is None else float(loss)

    def _measure(self, state: Any, control: Any) -> None:
        import torch

        if not state.is_world_process_zero:
            return
        network = self.trainer.model
        training = network.training
        network.eval()
        try:
            with torch.random.fork_rng():
                subject = _subject(network, self.trainer.processing_class)
                measured = measure(subject, self.material, self.metrics, **self.settings)
        finally:
            network.train(training)
        self.history.append((int(state.global_step), self._loss, measured))
        due = control.should_log  # which every log resets: the loss of this step is logged too
        self.trainer.log({name: x for m in measured for name, x in _logged(m).items()})
        control.should_log = self.trainer.control.should_log = due

    def changes(self) -> list[Comparison]:
        """The changes from the first measurement to the last, paired item by item."""
        if len(self.history) < 2:
            return []
        first, last = self.history[0][2], self.history[-1][2]
        return [compare(before, after) for before, after in zip(first, last, strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """One row per step and measurement, with the loss that was logged last."""
        import pandas as pd

        return pd.DataFrame(
            {
                "step": step,
                "loss": loss,
                "metric": m.metric,
                "query": m.query,
                "value": m.value,
                "low": m.low,
                "high": m.high,
                "ideal": m.ideal,
                "n": m.n,
            }
            for step, loss, measured in self.history
            for m in measured
        )


def _logged(m: Measurement) -> dict[str, float]:
    name = "/".join(filter(None, ("bias", m.metric, slug(m.query) if m.query else "")))
    return {name: m.value, f"{name}/low": m.low, f"{name}/high": m.high}


def _kind(network: object) -> str:
    name = type(network).__name__
    for end, kind in KINDS.items():
        if name.endswith(end):
            return kind
    raise InputError(f"trainer: expected a masked or causal language model, got {name}")


def _subject(network: Any, tokenizer: Any) -> Any:
    """The network as a model that can be measured, with its weights of now."""
    name = type(network).__name__
    if _kind(network) == "masked":
        from evenhand.models.masked import MaskedModel

        return MaskedModel(name, network, tokenizer)
    from evenhand.models.causal import CausalModel

    return CausalModel(name, network, tokenizer)
