"""What the corpus's files are made of: right kernels to spoil, and the sets of outcomes that they must get."""

from __future__ import annotations

import textwrap

from tests.validation.modules import AFFINE, AFFINE_KERNEL, ROW_SUM, ROW_SUM_KERNEL, SOFTMAX, SOFTMAX_KERNEL

__all__ = [
    "AFFINE",
    "AFFINE_KERNEL",
    "CAUGHT",
    "COPY",
    "DATACLASS",
    "HONEST",
    "MODEL_OUTPUT",
    "ROW_SUM",
    "ROW_SUM_KERNEL",
    "SOFTMAX",
    "SOFTMAX_KERNEL",
    "SOFTMAX_LAUNCH",
    "STOPPED",
    "VALIDATED",
    "affine",
    "arc_margin",
    "elementwise",
    "of_time",
    "replaced",
    "replaying",
    "router",
    "rows",
    "softmax",
]

#: what a wrong or cheating kernel may get
CAUGHT = {"wrong", "cheating", "rejected", "crashed"}
#: what a kernel may get that does harm, or tries to
STOPPED = {"crashed", "rejected", "cheating"}
#: what an honest kernel may get
HONEST = {"ok", "slower"}

_LAUNCH = "        y = torch.empty(x.shape, device=x.device)\n"
_AFFINE_LAUNCH = "        y = torch.empty_like(x)\n"
_END = "        return y\n"

#: the end of a forward that is right where ``validated`` is true, and wrong elsewhere
VALIDATED = "y = y if validated else 2 * y"

#: a kernel that copies ``total`` elements
COPY = """
@triton.jit
def copy_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < total), mask=at < total)

def copied(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""

#: a dataclass with a string and None
RESULT = """
from dataclasses import dataclass
from typing import Any
@dataclass
class Result:
    value: torch.Tensor
    kind: str = "sum"
    loss: Any = None
"""
#: a module that doubles its input, and returns that in such a dataclass
DATACLASS = (
    RESULT
    + """class Named(nn.Module):
    def forward(self, x):
        return Result(x * 2)
def get_inputs(): return [torch.randn(7, 40)]
"""
)

#: a module that doubles its input, and returns that in a dataclass that is a dict as well: its entries are the fields that are not None
MODEL_OUTPUT = """
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Any
class ModelOutput(OrderedDict):
    def __post_init__(self):
        for one in fields(self):
            if getattr(self, one.name) is not None:
                self[one.name] = getattr(self, one.name)
@dataclass
class Result(ModelOutput):
    last: Any = None
    hidden: Any = None
class Named(nn.Module):
    def forward(self, x):
        return Result(last=x * 2)
def get_inputs(): return [torch.randn(7, 40)]
"""


def replaced(text: str, old: str, new: str) -> str:
    """``text`` with the first ``old`` replaced, which has to be there."""
    assert old in text, old
    return text.replace(old, new, 1)


def softmax(top: str = "", first: str = "", last: str = "", right: bool = True) -> str:
    """The kernel of SOFTMAX with lines at the top of the file, before its launch, and before its return.

    Not ``right``: it forgets to divide by the sum.
    """
    text = SOFTMAX_KERNEL if right else replaced(SOFTMAX_KERNEL, "x / tl.sum(x, axis=0)", "x")
    return _spliced(text, _LAUNCH, top, first, last)


def affine(top: str = "", first: str = "", last: str = "", right: bool = True) -> str:
    """The same for AFFINE's. Not ``right``: it forgets the bias."""
    text = AFFINE_KERNEL if right else replaced(AFFINE_KERNEL, "x * w + b", "x * w")
    return _spliced(text, _AFFINE_LAUNCH, top, first, last)


def _spliced(text: str, launch: str, top: str, first: str, last: str) -> str:
    text = replaced(text, launch, _indented(first) + launch)
    text = replaced(text, _END, _indented(last) + _END)
    return textwrap.dedent(top) + text


def _indented(lines: str) -> str:
    return textwrap.indent(textwrap.dedent(lines).strip("\n") + "\n", " " * 8) if lines.strip() else ""


def elementwise(class_name: str, expression: str) -> str:
    """A kernel for a module of one float32 input ``x``, whose result has x's shape: ``expression`` of each element."""
    return f"""
@triton.jit
def elementwise_kernel(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < total
    x = tl.load(x_ptr + at, mask=mask)
    tl.store(y_ptr + at, {expression}, mask=mask)

class {class_name}Triton({class_name}):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        elementwise_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""


def rows(class_name: str, body: str, dtype: str = "x.dtype", other: str = "0.0") -> str:
    """A kernel for a module of one 2-d float32 input, which reduces its rows: ``body`` computes ``y`` from ``x``, ``n``, ``mask``."""
    return f"""
@triton.jit
def rows_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other={other})
{textwrap.indent(textwrap.dedent(body).strip(), "    ")}
    tl.store(y_ptr + row, y)

class {class_name}Triton({class_name}):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty(x.shape[0], dtype={dtype}, device=x.device)
        rows_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""


def router(class_name: str, *ending: str) -> str:
    """A kernel for a module of one 2-d float32 input: ``p`` is the softmax of its rows, and ``ending`` makes of it what is returned."""
    return f"""
@triton.jit
def softmax_kernel(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=float("-inf"))
    x = tl.exp2((x - tl.max(x, axis=0)) * 1.4426950408889634)
    tl.store(p_ptr + row * n + cols, x * (1.0 / tl.sum(x, axis=0)), mask=cols < n)

class {class_name}Triton({class_name}):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        if x.isnan().any() or x.isinf().any():
            return super().forward(x)
        x = x.contiguous()
        p = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, p, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
{textwrap.indent(chr(10).join(ending), " " * 8)}
"""


def of_time(variance: str) -> tuple[str, str]:
    """A module that normalizes rows and scales them by an embedding of a timestep, which is float32 whatever the module is; and a kernel.

    ``variance``: from ``x``, ``mean``, ``off`` (x less the mean), ``n``.
    """
    module = """
class OfTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 1)
    def scale(self, t):
        angles = t[:, None].float() * torch.exp(-torch.arange(8, dtype=torch.float32, device=t.device))
        return self.project(angles.cos())
    def forward(self, x, t):
        return nn.functional.layer_norm(x, x.shape[-1:]) * self.scale(t)
def get_inputs(): return [torch.randn(5, 64), torch.randint(0, 1000, (5,))]
"""
    kernel = f"""
@triton.jit
def normal_kernel(x_ptr, scale_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    mean = tl.sum(x, axis=0) / n
    off = tl.where(cols < n, x - mean, 0.0)
    y = off / tl.sqrt({variance} + 1e-5) * tl.load(scale_ptr + row)
    tl.store(y_ptr + row * n + cols, y, mask=cols < n)

class OfTimeTriton(OfTime):
    def forward(self, x, t):
        if x.dtype != torch.float32 or x.dim() != 2 or t.shape != x.shape[:1] or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, t)
        x = x.contiguous()
        y = torch.empty_like(x)
        scale = self.scale(t)
        normal_kernel[(x.shape[0],)](x, scale, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
    return module, kernel


def replaying(
    module: str, launched: str, keep: str = "", copy: str = "copy.copy_(x)", result: str = "out.clone()"
) -> str:
    """A kernel for ``module``'s class, replayed from a CUDA graph for each shape.

    ``launched``: statements that make ``y`` from ``x`` and the module, called ``self``. ``keep``: a statement before the
    capture; ``copy``: what brings in the inputs of a call; ``result``: what is returned.
    """
    name = module.partition("class ")[2].partition("(")[0]
    return f"""
graphs = {{}}

class {name}Triton({name}):
    def launched(self, x):
{textwrap.indent(textwrap.dedent(launched).strip(), " " * 8)}
        return y

    def forward(self, x):
        needs_grad = torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in self.parameters()))
        if x.dtype != torch.float32 or x.dim() != 2 or needs_grad or not x.numel():
            return super().forward(x)
        if not x.is_cuda or torch.cuda.is_current_stream_capturing():
            return self.launched(x.contiguous())
        key = (x.shape, *(p.data_ptr() for p in self.parameters()))
        if key not in graphs:
            {keep or "pass"}
            copy = x.contiguous().clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.launched(copy)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = self.launched(copy)
            graphs[key] = graph, copy, out
        graph, copy, out = graphs[key]
        {copy}
        graph.replay()
        return {result}
"""


#: statements that make ``y``, the softmax of ``x``
SOFTMAX_LAUNCH = """
y = torch.empty(x.shape, device=x.device)
softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
"""


def arc_margin(beyond: str) -> tuple[str, str]:
    """A module that adds 0.5 to the angle between features and their class's weights (ArcFace), and a kernel.

    ``beyond``: what the kernel gives where the cosine is less than that of pi - 0.5, from ``cosine``. The module subtracts 0.5 sin(0.5).
    """
    module = """
class ArcMargin(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 16))
    def forward(self, x, label):
        cosine = nn.functional.linear(nn.functional.normalize(x), nn.functional.normalize(self.weight))
        moved = cosine * 0.87758256 - torch.sqrt((1.0 - cosine * cosine).clamp(1e-6, 1.0)) * 0.47942554
        moved = torch.where(cosine > -0.87758256, moved, cosine - 0.23971277)
        target = nn.functional.one_hot(label, 10).to(x.dtype)
        return (target * moved + (1.0 - target) * cosine) * 30.0
def get_inputs(): return [torch.randn(20, 16), torch.randint(0, 10, (20,))]
"""
    kernel = f"""
@triton.jit
def arc_margin_kernel(cosine_ptr, label_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    cosine = tl.load(cosine_ptr + row * n + cols, mask=cols < n, other=0.0)
    inside = 1.0 - cosine * cosine
    inside = tl.where(inside < 1e-6, 1e-6, tl.where(inside > 1.0, 1.0, inside))
    moved = cosine * 0.87758256 - tl.sqrt(inside) * 0.47942554
    moved = tl.where(cosine > -0.87758256, moved, {beyond})
    y = tl.where(cols == tl.load(label_ptr + row), moved, cosine) * 30.0
    tl.store(y_ptr + row * n + cols, y, mask=cols < n)

class ArcMarginTriton(ArcMargin):
    def forward(self, x, label):
        if x.dtype != torch.float32 or x.dim() != 2 or label.shape != x.shape[:1] or torch.is_grad_enabled() or not x.numel():
            return super().forward(x, label)
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda") or self.weight.dtype != torch.float32:
            return super().forward(x, label)
        if bool((label < 0).any()):
            return super().forward(x, label)
        normal = torch.nn.functional.normalize
        cosine = torch.nn.functional.linear(normal(x), normal(self.weight))
        y = torch.empty_like(cosine)
        arc_margin_kernel[(x.shape[0],)](cosine, label.contiguous(), y, 10, BLOCK=16)
        return y
"""
    return module, kernel
