"""Less than float32 on the CPU. Linear layers in eight bits: faster, and no longer exact.

A weight has the scale of its output channel, a token state the scale of its token, so that
neither the batch nor an unusual token changes another token's numbers. Embeddings, norms,
attention, the last layer at the places asked about and the head stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.masked.forward import Stage, stages_of
from evenhand.masked.layers import layers_of

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

__all__ = ["Int8", "guard_half", "int8_stages"]

LEVELS = 255


class Int8:
    """Linear layers with one input, stacked: int8 weights, uint8 states.

    A state x is low + step · q with q in 0 … 255, so that W x + b = step · (W q) + low · (W 1) + b.
    """

    def __init__(self, *linear: nn.Linear) -> None:
        import torch

        weight = torch.cat([each.weight.detach() for each in linear])
        scale = (weight.abs().amax(dim=1) / 127).clamp_min(1e-12)
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to drop quantised tensors some day
            made = torch.quantize_per_channel(weight, scale.double(), zero, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(made, None)
            sums = made.dequantize().sum(dim=1)
        self.fixed = torch.stack([sums, torch.cat([each.bias.detach() for each in linear])])

    def __call__(self, states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        product, step, shift = self._product(states)
        return torch.mul(product, step, out=out).addmm_(shift, self.fixed)

    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        product, step, shift = self._product(states)
        return product.mul_(step).add_(residual).addmm_(shift, self.fixed)

    def _product(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """W q, step, and what `fixed` is to be multiplied by: low and 1."""
        import torch

        high, low = states.amax(dim=1, keepdim=True), states.amin(dim=1, keepdim=True)
        step = ((high - low) / LEVELS).clamp_min(1e-12)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            (states - low).div_(step), 1.0, 0, self.packed
        )
        return product, step, torch.cat([low, torch.ones_like(low)], dim=1)


def int8_stages(network: PreTrainedModel) -> tuple[Stage, ...]:
    """The layers of the model with their linear maps in eight bits."""
    import torch

    layers = layers_of(network)
    if layers is None:
        kind = type(network).__name__
        raise InputError(f"int8: expected a model of the BERT family, got {kind}")
    if network.device.type != "cpu" or network.dtype != torch.float32:
        raise InputError(
            f"int8: expected device cpu and dtype float32, got {network.device.type} and"
            f" {str(network.dtype).removeprefix('torch.')}"
        )
    return tuple(stages_of(layers, Int8))


@lru_cache
def guard_half() -> None:
    """See to it that arithmetic in half precision does not end the process on this CPU.

    Some virtual machines announce the matrix unit AMX and stop a program that uses it. That
    cannot be caught, so another process tries it; where it dies, the library that would use the
    unit (oneDNN) is switched off, which is slow and works.
    """
    import torch

    if "amx_tile" not in _processor():
        return
    attempt = (
        "import torch; a = torch.ones(512, 512, dtype=torch.bfloat16); torch.mm(a, a);"
        " a = a.half(); torch.mm(a, a)"
    )
    tried = subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False)
    if tried.returncode:
        torch.backends.mkldnn.set_flags(_enabled=False)  # type: ignore[no-untyped-call]


def _processor() -> str:
    """What the processor announces, where the system tells it."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
