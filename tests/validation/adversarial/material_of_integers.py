"""Modules that compare integers with constants, and kernels for them, right ones or spoilt: what the corpus's files are made of."""

from __future__ import annotations


def of_tokens(padding: str, others: str = "torch.randint(501, 1000, (4, 24))") -> tuple[str, str]:
    """A module that looks up 1000 rows of a table by index, those of padding (index 500) halved, and a kernel.

    ``padding``: what the kernel multiplies a row with, from ``i``, its index. ``others``: the example's indices.
    """
    module = f"""
class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.padding = 500
        self.table = nn.Embedding(1000, 16)
    def forward(self, ids):
        return torch.where((ids == self.padding)[..., None], 0.5, 1.0) * self.table(ids)
def get_inputs(): return [{others}]
"""
    kernel = f"""
@triton.jit
def tokens_kernel(i_ptr, t_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    i = tl.load(i_ptr + row)
    y = tl.load(t_ptr + i * n + cols, mask=cols < n) * ({padding})
    tl.store(y_ptr + row * n + cols, y, mask=cols < n)

class TokensTriton(Tokens):
    def forward(self, ids):
        table = self.table.weight
        if ids.dtype != torch.int64 or table.dtype != torch.float32 or torch.is_grad_enabled() or not ids.numel():
            return super().forward(ids)
        if self.padding != 500 or torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return super().forward(ids)
        ids = ids.contiguous()
        y = torch.empty(*ids.shape, table.shape[1], device=ids.device)
        tokens_kernel[(ids.numel(),)](ids, table, y, table.shape[1], BLOCK=triton.next_power_of_2(table.shape[1]))
        return y
"""
    return module, kernel


def of_labels(ignored: str) -> tuple[str, str]:
    """A module that takes from each row the element of its label, and 0 where that is -100, which no example has; and a kernel.

    ``ignored``: what the kernel gives there, from ``label`` and ``found``, the row's first element.
    """
    module = """
class Labels(nn.Module):
    def forward(self, x, labels):
        ignored = labels == -100
        found = x.gather(1, labels.masked_fill(ignored, 0)[:, None])[:, 0]
        return found.masked_fill(ignored, 0.0)
def get_inputs(): return [torch.randn(12, 20), torch.randint(0, 20, (12,))]
"""
    kernel = f"""
@triton.jit
def labels_kernel(x_ptr, label_ptr, y_ptr, n):
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    found = tl.load(x_ptr + row * n + tl.where(label == -100, 0, label))
    tl.store(y_ptr + row, tl.where(label == -100, {ignored}, found))

class LabelsTriton(Labels):
    def forward(self, x, labels):
        fits = x.dim() == 2 and labels.dim() == 1 and labels.dtype == torch.int64 and x.numel()
        if not fits or x.dtype != torch.float32 or torch.is_grad_enabled() or len(x) != len(labels):
            return super().forward(x, labels)
        if bool(((labels < 0) & (labels != -100)).any()):
            return super().forward(x, labels)
        y = torch.empty(len(x), device=x.device)
        labels_kernel[(len(x),)](x.contiguous(), labels.contiguous(), y, x.shape[1])
        return y
"""
    return module, kernel


def windowed(near: str) -> tuple[str, str]:
    """A module that sums the rows which are less than 100 places apart, for each of 24 places; and a kernel.

    ``near``: whether the kernel adds the row ``others`` to the sum of the place ``at``.
    """
    module = """
class Windowed(nn.Module):
    def forward(self, x):
        at = torch.arange(x.shape[1], device=x.device)
        near = (at[:, None] - at[None, :]).abs() < 100
        return near.to(x.dtype) @ x
def get_inputs(): return [torch.randn(4, 24, 8)]
"""
    kernel = f"""
@triton.jit
def windowed_kernel(x_ptr, y_ptr, length, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    at = tl.program_id(1)
    others = tl.arange(0, BLOCK)
    cols = tl.arange(0, 8)
    rows = batch * length + others
    x = tl.load(x_ptr + rows[:, None] * 8 + cols[None, :], mask=(others < length)[:, None], other=0.0)
    y = tl.sum(x * ({near})[:, None].to(tl.float32), axis=0)
    tl.store(y_ptr + (batch * length + at) * 8 + cols, y)

class WindowedTriton(Windowed):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 3 or x.shape[2] != 8 or torch.is_grad_enabled() or not x.numel():
            return super().forward(x)
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        windowed_kernel[x.shape[:2]](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
    return module, kernel
