"""How eager runs a recurrent layer: in cuDNN, with a launch for each step or one for all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

_aten = torch.ops.aten
LAYERS = frozenset({_aten.lstm.input, _aten.gru.input, _aten.rnn_tanh.input, _aten.rnn_relu.input})
CELLS = frozenset(
    {_aten.lstm_cell.default, _aten.gru_cell.default, _aten.rnn_tanh_cell.default, _aten.rnn_relu_cell.default}
)


@dataclass(frozen=True)
class Recurrent:
    """``kind``: "lstm", "gru", "rnn_tanh" or "rnn_relu". ``steps`` of one layer in one direction; ``chains``: layers times directions."""

    kind: str
    steps: int
    chains: int
    directions: int
    hidden: int
    width: int
    batch: int
    dtype: torch.dtype
    projected: bool
    operations: int
    launches: int

    @property
    def persistent(self) -> bool:
        """Whether cuDNN takes all steps in one kernel.

        By the rules of ``get_algo`` in torch's ``aten/src/ATen/native/cudnn/RNN.cpp`` for a whole GPU of compute capability 8.0 or
        9.0 and more: small hidden sizes in any dtype but float64, others in float16 alone.
        """
        if self.projected or self.dtype == torch.float64:
            return False
        plain = self.kind.startswith("rnn")
        if self.hidden <= (384 if plain else 192):
            return True
        if self.dtype != torch.float16 or self.kind == "gru" or self.chains != 1:
            return False
        fits = self.hidden <= 1024 and self.hidden % 128 == 0 and self.width % 128 == 0
        batch = self.batch % 8 == 0 and self.batch <= 128
        return fits and batch and (not plain or self.batch < 96 or self.hidden < 896)


def layers(target: Any, args: Any) -> tuple[Recurrent, Any]:
    """A recurrent layer that is called with ``args``, and tensors of its results' shapes."""
    x, hx, params, has_biases, count, _, _, bidirectional = args[:8]
    first = hx[0] if isinstance(hx, (list, tuple)) else hx
    batch_first = bool(args[8]) if len(args) > 8 else False
    directions = 2 if bidirectional else 1
    steps = int(x.shape[1 if batch_first and x.dim() == 3 else 0])
    batch = int(x.shape[0 if batch_first else 1]) if x.dim() == 3 else 1
    operations = 2 * steps * batch * sum(int(p.numel()) for p in params if p.dim() == 2)
    out = x.new_empty((*x.shape[:-1], int(first.shape[-1]) * directions))
    states = [torch.empty_like(h) for h in hx] if isinstance(hx, (list, tuple)) else [torch.empty_like(hx)]
    kind = str(target.overloadpacket).rpartition(".")[2]
    hidden = int(params[1].shape[-1])
    seen = Recurrent(
        kind,
        steps,
        count * directions,
        directions,
        hidden,
        int(x.shape[-1]),
        batch,
        x.dtype,
        int(first.shape[-1]) != hidden or len(params) == count * directions * (5 if has_biases else 3),
        operations,
        0,
    )
    # A product for all inputs of a layer; then one launch, or one a step.
    per_chain = 2 if seen.persistent else 1 + steps
    return _with_launches(seen, per_chain * seen.chains), (out, *states)


def cell(target: Any, args: Any) -> tuple[Recurrent, Any]:
    """One step of a recurrent layer: two products and one kernel for the rest."""
    x, hx, of_inputs, of_states = args[:4]
    first = hx[0] if isinstance(hx, (list, tuple)) else hx
    batch = int(x.shape[0]) if x.dim() == 2 else 1
    kind = str(target.overloadpacket).rpartition(".")[2].removesuffix("_cell")
    operations = 2 * batch * (int(of_inputs.numel()) + int(of_states.numel()))
    seen = Recurrent(kind, 1, 1, 1, int(first.shape[-1]), int(x.shape[-1]), batch, x.dtype, False, operations, 3)
    result = tuple(torch.empty_like(h) for h in hx) if isinstance(hx, (list, tuple)) else torch.empty_like(hx)
    return seen, result


def _with_launches(seen: Recurrent, count: int) -> Recurrent:
    return replace(seen, launches=count)
