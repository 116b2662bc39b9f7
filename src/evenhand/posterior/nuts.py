"""The same models sampled by NumPyro's NUTS, as a check on the exact samplers.

Needs the extra `nuts`. The priors are those of the exact samplers; nothing is integrated out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import InputError, MissingExtraError
from evenhand.posterior.crossed import (
    CROSSED,
    CrossedData,
    CrossedPrior,
    EffectDraws,
    build_crossed_fit,
    check_contrasts,
)
from evenhand.posterior.fits import Fit
from evenhand.posterior.thesis import THESIS, ThesisPrior, build_design, build_thesis_fit
from evenhand.statistics.intervals import Floats

if TYPE_CHECKING:
    from evenhand.posterior.models import Priors
    from evenhand.posterior.tables import Table


CHAINS = 4
WARM_UP = 1000


def _numpyro() -> ModuleType:
    try:
        numpyro = import_module("numpyro")
    except ImportError:
        raise MissingExtraError("numpyro", "the sampler nuts", "evenhand[nuts]") from None
    numpyro.enable_x64()
    return numpyro


def fit_nuts(model: str, table: Table, priors: Priors, *, draws: int = 4000, seed: int = 0) -> Fit:
    """Fit any model but the paper's by NUTS, in four chains."""
    sampled = run_nuts(
        build_numpyro_model(model, table, priors), draws, seed, dense=model in THESIS
    )
    if model in THESIS:
        design = build_design(model, table)
        named = {name: sampled[name] for name in (*design.names, "sigma")}
        return build_thesis_fit(model, table, design, named, sampler="nuts")
    data = CrossedData.of(table, interaction=model == "crossed")
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in sampled.items()}
    slopes = [flat[f"slope_{k}"] for k in range(len(data.present) - 1)]
    eta = flat.get("eta", np.zeros((len(flat["delta"]), data.group.size, data.classes)))
    beta = np.concatenate(
        [flat["gamma"], flat["delta"][:, None], flat["word"], flat["delta_gap"], *slopes], axis=1
    )
    effects = EffectDraws(beta, flat["theta"], eta)
    fit = build_crossed_fit(table, data, sampled["scales"], effects, sampler="nuts")
    return replace(fit, model=model, notes=check_contrasts(table))


def build_numpyro_model(model: str, table: Table, priors: Priors) -> Callable[[], None]:
    """Build a model as a function that NumPyro can sample."""
    numpyro = _numpyro()
    if model in THESIS:
        return _thesis(numpyro, model, table, priors.thesis)
    if model not in CROSSED:
        raise InputError(
            f"{model}: expected the sampler exact, got nuts, which has the other models only"
        )
    check_contrasts(table)
    interaction = model == "crossed"
    data = CrossedData.of(table, interaction=interaction)
    return _crossed(numpyro, data, priors.crossed.for_model(interaction=interaction))


def run_nuts(
    model: Callable[[], None], draws: int, seed: int, *, dense: bool = False
) -> dict[str, Floats]:
    """Run NUTS and return draws by name, chains × draws × shape of the quantity."""
    _numpyro()
    infer = import_module("numpyro.infer")
    kernel = infer.NUTS(model, dense_mass=dense, target_accept_prob=0.9)
    mcmc = infer.MCMC(
        kernel,
        num_warmup=WARM_UP,
        num_samples=draws // CHAINS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(import_module("jax").random.PRNGKey(seed))
    samples = mcmc.get_samples(group_by_chain=True)
    return {name: np.asarray(x, dtype=float) for name, x in samples.items()}


def _thesis(
    numpyro: ModuleType, model: str, table: Table, prior: ThesisPrior
) -> Callable[[], None]:
    design, sample = build_design(model, table), numpyro.sample
    dist = import_module("numpyro.distributions")

    def model_function() -> None:
        total = 0.0
        for name, entries, index in zip(design.names, design.entries, design.index, strict=True):
            values = sample(name, dist.Normal(*prior.of(name)).expand([len(entries)]).to_event(1))
            total = total + values[index]
        sigma = sample("sigma", dist.HalfCauchy(prior.error_scale))
        sample("y", dist.Normal(total, sigma), obs=table.distance)

    return model_function


def _crossed(numpyro: ModuleType, data: CrossedData, prior: CrossedPrior) -> Callable[[], None]:
    """Well-identified effects are centred; δ_i and η are multiples of their scales."""
    dist = import_module("numpyro.distributions")
    stack = import_module("jax.numpy").stack
    sample = numpyro.sample
    group_index = np.searchsorted(data.present, data.group)
    group = group_index[data.attribute]
    words, groups = data.words, len(data.present)

    def vector(name: str, spread: object) -> Any:
        return sample(name, dist.Normal(0.0, spread).expand([words]).to_event(1))

    def model_function() -> None:
        error = sample("scale_error", dist.HalfCauchy(prior.error_scale))
        spread = dist.MixtureSameFamily(
            dist.Categorical(np.array([0.5, 0.5])),
            dist.HalfNormal(np.array([prior.spread_scale, prior.negligible_scale])),
        )
        others = [
            sample(f"scale_{name}", spread if is_spread else dist.HalfNormal(prior.effect_scale))
            for name, is_spread in zip(data.scales[1:], data.is_spread[1:], strict=True)
        ]
        scales = numpyro.deterministic("scales", stack([error, *others]))
        levels = dist.Normal(prior.level_mean, prior.level_sd).expand([groups]).to_event(1)
        gamma = sample("gamma", levels)
        by_group = stack(others[:groups])
        theta = sample("theta", dist.Normal(gamma[group_index], by_group[group_index]).to_event(1))
        delta = sample("delta", dist.Normal(0.0, prior.delta_sd))
        multiple = vector("delta_multiple", 1.0)
        gap = numpyro.deterministic("delta_gap", multiple * others[groups])
        mean = theta[data.attribute] + vector("word", others[groups + 1])[data.word]
        mean = mean + (delta + gap)[data.word] * data.associated
        for k in range(groups - 1):
            slope = vector(f"slope_{k}", others[groups + 2 + k])
            mean = mean + slope[data.word] * (group == k)
        if data.word_class is not None:
            shape = (data.group.size, data.classes)
            unit = sample("eta_multiple", dist.Normal(0.0, 1.0).expand(shape).to_event(2))
            tau = scales[-groups:][group_index][:, None]
            eta = numpyro.deterministic("eta", unit * tau)
            mean = mean + eta[data.attribute, data.word_class[data.word]]
        sample("y", dist.Normal(mean, error), obs=data.y)

    return model_function
