"""Triton's interpreter after its repairs, in a process of its own (TRITON_INTERPRET is read at import)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, triton, triton.language as tl
from kernel_lsp.validation import interpreter
interpreter.repair()
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

@triton.jit
def halves(x_ptr, y_ptr, sum_ptr, product_ptr, larger_ptr, size_ptr, exp_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0)
    tl.store(sum_ptr + at, x + y, mask=at < n)
    tl.store(product_ptr + at, x * y * 0.5, mask=at < n)
    tl.store(larger_ptr + at, tl.where(x > y, x, y), mask=at < n)
    tl.store(size_ptr + at, tl.abs(x), mask=at < n)
    tl.store(exp_ptr + at, tl.exp(x.to(tl.float32)).to(tl.bfloat16), mask=at < n)
    tl.store(total_ptr, tl.sum((x * y).to(tl.float32)).to(tl.bfloat16))

x, y = torch.randn(50).bfloat16(), torch.randn(50).bfloat16()
outs = [torch.empty(50, dtype=torch.bfloat16) for _ in range(5)] + [torch.empty(1, dtype=torch.bfloat16)]
halves[(1,)](x, y, *outs, 50, BLOCK=64)
right = [x + y, x * y * 0.5, torch.maximum(x, y), x.abs(), x.float().exp().bfloat16(), (x * y).float().sum().bfloat16()]
for name, mine, theirs in zip("sum product larger abs exp total".split(), outs, right):
    torch.testing.assert_close(mine.squeeze(), theirs.squeeze(), msg=name, rtol=8e-3, atol=1e-2)
assert torch.equal(outs[0], right[0]) and torch.equal(outs[1], right[1])

@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))

a, b, c = torch.randn(32, 32).bfloat16(), torch.randn(32, 32).bfloat16(), torch.empty(32, 32)
product[(1,)](a, b, c, N=32)
torch.testing.assert_close(c, a.float() @ b.float())

@triton.jit
def eights(x_ptr, y_ptr, back_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    eight = tl.load(x_ptr + at).to(tl.float8e4nv)
    tl.store(y_ptr + at, eight)
    tl.store(back_ptr + at, eight.to(tl.float32))

v = torch.randn(64) * 100
eight, back = torch.empty(64, dtype=torch.float8_e4m3fn), torch.empty(64)
eights[(1,)](v, eight, back, N=64)
assert torch.equal(back, v.clamp(-448, 448).to(torch.float8_e4m3fn).float()) and torch.equal(eight.float(), back)

@triton.jit
def functions(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    y = libdevice.tanh(x) + cuda_libdevice.erf(x) + libdevice.pow(tl.abs(x), 2.0) + libdevice.log1p(x * x)
    tl.store(y_ptr + at, y)

x, y = torch.randn(64), torch.empty(64)
functions[(1,)](x, y, N=64)
torch.testing.assert_close(y, x.tanh() + x.erf() + x * x + (x * x).log1p())

@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"])
@triton.jit
def doubled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

x, y = torch.randn(1000), torch.empty(1000)
doubled[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, 1000)
assert torch.equal(y, x * 2) and [*interpreter.autotuned] == ["doubled"]

@triton.jit
def masked(x_ptr, y_ptr, kept_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x)
    tl.store(kept_ptr + at, x, mask=at < n)
    tl.store(kept_ptr + n, tl.load(x_ptr, mask=n < 0, other=0.0))

for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.int8, torch.bool):
    x, y, kept = torch.ones(5).to(dtype), torch.zeros(8).to(dtype), torch.zeros(8).to(dtype)
    masked[(1,)](x, y, kept, 5, BLOCK=8)
    y, kept = y.double(), kept.double()
    assert kept.tolist() == [1.0] * 5 + [0.0] * 3 and y[:5].tolist() == [1.0] * 5, dtype
    assert bool((y[5:].isnan() | (y[5:] > 80)).all() if dtype is not torch.bool else y[5:].all()), dtype
    assert bool(y[5:].isnan().all()) == dtype.is_floating_point, dtype

called = []

@triton.jit
def after(a, b, c, d):
    called.append(a)
    return a * c, b * c + d

@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b

@triton.jit
def folds(a_ptr, b_ptr, scanned_ptr, reversed_ptr, last_ptr, whole_ptr, largest_ptr, N: tl.constexpr):
    at = tl.arange(0, 4)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(scanned_ptr + at, tl.associative_scan((a, b), 1, after)[1])
    tl.store(reversed_ptr + at, tl.associative_scan((a, b), 1, after, reverse=True)[1])
    tl.store(last_ptr + tl.arange(0, 4), tl.reduce((a, b), 1, after)[1])
    tl.store(whole_ptr + tl.arange(0, 1)[:, None], tl.reduce((a, b), None, after, keep_dims=True)[1])
    tl.store(largest_ptr + tl.arange(0, N), tl.reduce(a, 0, larger))

a, b = torch.rand(4, 64), torch.randn(4, 64)
outs = [torch.empty(4, 64), torch.empty(4, 64), torch.empty(4), torch.empty(1), torch.empty(64)]
folds[(1,)](a, b, *outs, N=64)

def steps(a, b):
    y, found = torch.zeros(a.shape[0]), []
    for i in range(a.shape[1]):
        y = y * a[:, i] + b[:, i]
        found.append(y)
    return torch.stack(found, 1)

right = steps(a, b)
torch.testing.assert_close(outs[0], right)
torch.testing.assert_close(outs[1], steps(a.flip(1), b.flip(1)).flip(1))
torch.testing.assert_close(outs[2], right[:, -1])
torch.testing.assert_close(outs[3], steps(a.reshape(1, -1), b.reshape(1, -1))[:, -1])
assert torch.equal(outs[4], a.amax(0))  # its function asks which one is larger, so it is called for single numbers
assert len(called) == 6 + 6 + 6 + 8  # the logarithms of how many elements are in a row

@triton.jit
def added(x_ptr, columns_ptr, rows_ptr, whole_ptr, kept_ptr, integers_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(columns_ptr + tl.arange(0, N), tl.sum(x, axis=0))
    tl.store(rows_ptr + tl.arange(0, N)[:, None], tl.sum(x, axis=1, keep_dims=True))
    tl.store(whole_ptr, tl.sum(x))
    tl.store(kept_ptr + tl.arange(0, 1)[:, None], tl.sum(x, keep_dims=True))
    tl.store(integers_ptr + tl.arange(0, N), tl.sum(x.to(tl.int32), axis=0))

x = torch.randn(64, 64) + 1000
outs = [torch.empty(64), torch.empty(64), torch.empty(1), torch.empty(1), torch.empty(64, dtype=torch.int32)]
added[(1,)](x, *outs, N=64)
for mine, right in zip(outs[:4], (x.double().sum(0), x.double().sum(1), x.double().sum(), x.double().sum())):
    assert ((mine.double() - right).abs() / right).max() < 1.2e-7, "in pairs: one row after the other has twice to five times that"
assert torch.equal(outs[4], x.int().sum(0, dtype=torch.int32))

x = torch.randn(50).bfloat16()
with interpreter.pretending_cuda():
    assert x.is_cuda and torch.empty(3, device="cuda").device.type == "cpu" and x.to("cuda:0") is x and x.cuda() is x
    assert torch.cuda.get_device_properties(0).multi_processor_count == 132
assert not x.is_cuda
print("all right")

@triton.jit
def twice(x):
    return x * 2

@triton.jit
def helped(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, twice(twice(x)) + tl.sum(x) + tl.cdiv(N, 3))

set_up = []
of_triton = triton.runtime.interpreter._patch_lang_core
triton.runtime.interpreter._patch_lang_core = lambda *given: (set_up.append(given), of_triton(*given))
for _ in range(2):
    x, y = torch.rand(64), torch.empty(64)
    helped[(4,)](x, y, N=64)
    torch.testing.assert_close(y, 4 * x + x.sum() + 22)
assert 2 <= len(set_up) <= 2 * 3, "the language is set up once a launch, not at every call"
"""


@pytest.mark.slow
def test_the_repaired_interpreter_computes_what_a_gpu_would(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "all right", done.stderr
