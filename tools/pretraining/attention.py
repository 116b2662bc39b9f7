"""Attention within each row of a batch whose rows lie end to end; causal: to earlier tokens only.

`flash` is the fast one, on CUDA in bfloat16; `padded` lays the rows out with padding and a mask:
it runs anywhere, in any precision, and is what `flash` is checked against.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Attention = Callable[[Tensor, Tensor, Tensor, Tensor, int], Tensor]
"""Queries, keys and values (tokens, heads, size), bounds of the rows, the longest row there is."""


def padded(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int) -> Tensor:
    """Attention by masked rows of equal length."""
    return _padded(query, key, value, bounds, longest, causal=False)


def causal_padded(
    query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int
) -> Tensor:
    """The same for causal attention."""
    return _padded(query, key, value, bounds, longest, causal=True)


def _padded(
    query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, *, causal: bool
) -> Tensor:
    lengths = bounds.diff()
    slots = torch.arange(longest, device=bounds.device)
    places = (bounds[:-1, None] + slots).clamp(max=len(query) - 1)
    seen = (slots < lengths[:, None].clamp(min=1))[:, None, None, :]
    if causal:
        seen = seen & (slots <= slots[:, None])
    queries, keys, values = (part[places].transpose(1, 2) for part in (query, key, value))
    mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
    row = torch.repeat_interleave(
        torch.arange(len(lengths), device=bounds.device), lengths, output_size=len(query)
    )
    offset = torch.arange(len(query), device=bounds.device) - bounds[row]
    return mixed.transpose(1, 2)[row, offset]


def flash(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int) -> Tensor:
    """Attention by the flash kernel for rows of various lengths (torch 2.10 or newer)."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(query, key, value, bounds, bounds, longest, longest)  # type: ignore[return-value]


def causal_flash(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int) -> Tensor:
    """The same for causal attention (torch 2.11 or newer)."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(  # type: ignore[return-value]
        query, key, value, bounds, bounds, longest, longest, window_size=(-1, 0)
    )


def causal_flash_of_2_10(
    query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int
) -> Tensor:
    """The same for causal attention (torch 2.10)."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(  # type: ignore[call-arg, return-value]
        query, key, value, bounds, bounds, longest, longest, is_causal=True
    )


def choose(device: torch.device, *, causal: bool = False) -> tuple[Attention, str]:
    """The fastest attention that works on a device, and why; it is tried, not assumed."""
    exact = causal_padded if causal else padded
    if device.type != "cuda":
        return exact, "padded (no CUDA)"
    why = []
    for fast in (causal_flash, causal_flash_of_2_10) if causal else (flash,):
        try:
            worst = disagreement(fast, device, reference=exact)
        except (ImportError, RuntimeError, TypeError) as problem:
            why.append(f"{fast.__name__} failed: {problem}")
            continue
        if worst < 0.02:
            return fast, f"flash (off by {worst:.4f} from float32)"
        why.append(f"{fast.__name__} is off by {worst:.3f}")
    return exact, f"padded, SLOW ({'; '.join(why)})"


def disagreement(
    attention: Attention,
    device: torch.device,
    dtype: torch.dtype = torch.bfloat16,
    reference: Attention = padded,
) -> float:
    """Relative error, forward and backward, of an attention in `dtype` to one in float32."""
    generator = torch.Generator(device).manual_seed(3)
    bounds = torch.tensor([0, 5, 133, 134, 200, 456, 456, 512], dtype=torch.int32, device=device)
    parts = [torch.randn(512, 4, 64, generator=generator, device=device) for _ in range(3)]
    weights = torch.randn(512, 4, 64, generator=generator, device=device)

    def run(function: Attention, dtype: torch.dtype) -> list[Tensor]:
        query, key, value = (part.to(dtype, copy=True).requires_grad_() for part in parts)
        out = function(query, key, value, bounds, 256)
        gradients = torch.autograd.grad((out.float() * weights).sum(), (query, key, value))
        return [out.detach().float(), *(gradient.float() for gradient in gradients)]

    pairs = zip(run(attention, dtype), run(reference, torch.float32), strict=True)
    return max(float((ours - right).norm() / right.norm()) for ours, right in pairs)
