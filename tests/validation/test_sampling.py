"""Program instances that are left out under the interpreter, in a worker's own trial."""

import pytest

from kernel_lsp.validation.sampling import Late, LeftOut, Sampling

GRID = (1000, 1, 1)


def run(sampling: Sampling, pause: float, monkeypatch) -> int:
    """One launch whose instances take ``pause`` seconds each, by a clock that only they move; the instances run."""
    now = [0.0]
    monkeypatch.setattr("kernel_lsp.validation.sampling.time.monotonic", lambda: now[0])
    sampling.reset()
    sampling.launch(GRID)
    for number in range(GRID[0]):
        if not sampling.skips((number, 0, 0)):
            now[0] += pause
    return sampling.run


def test_a_short_launch_is_run_in_full(monkeypatch):
    sampling = Sampling()
    sampling.seconds = 0.25
    assert run(sampling, 0.0001, monkeypatch) == 1000


def test_a_long_launch_is_cut_short_and_the_next_spreads_its_instances(monkeypatch):
    sampling = Sampling()
    sampling.seconds = 0.25
    assert 2 <= run(sampling, 0.01, monkeypatch) < 30
    assert sampling.total == 1000
    assert 2 <= run(sampling, 0.01, monkeypatch) < 30
    assert max(sampling.chosen or ()) == 999


def test_after_a_moment_of_load_a_launch_is_run_in_full_again(monkeypatch):
    sampling = Sampling()
    sampling.seconds = 0.25
    run(sampling, 0.01, monkeypatch)  # the machine was busy
    run(sampling, 0.0001, monkeypatch)  # few are chosen, and they turn out to be quick
    assert run(sampling, 0.0001, monkeypatch) == 1000


def test_no_launch_begins_where_instances_of_the_one_before_were_left_out(monkeypatch):
    """It would read what they have not written: by an index among that, memory that is not its own."""
    sampling = Sampling()
    sampling.seconds = 0.25
    run(sampling, 0.01, monkeypatch)
    with pytest.raises(LeftOut):
        sampling.launch((1, 1, 1))
    assert sampling.left_out
    sampling.reset()
    sampling.launch((1, 1, 1))
    assert not sampling.left_out


def test_a_call_ends_where_its_instances_take_too_long(monkeypatch):
    sampling = Sampling()
    sampling.end = 1.0
    with pytest.raises(Late):
        run(sampling, 0.01, monkeypatch)
    assert sampling.late and 90 < sampling.run < 110


MODULE = """
class Taken(nn.Module):
    def forward(self, x, table):
        return table[x.argmax(1)]

def get_inputs():
    return [torch.randn(3000, 16), torch.randn(16, 8)]
"""

KERNEL = """
@triton.jit
def largest(x_ptr, index_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    for _ in range(1000):  # an instance takes so long that not all are run within the time for a launch
        x = tl.maximum(x, tl.minimum(x, x, propagate_nan=tl.PropagateNan.ALL), propagate_nan=tl.PropagateNan.ALL)
    nan = (x != x).to(tl.int32)
    largest = tl.argmax(x, axis=0, tie_break_left=True)
    first_nan = tl.argmax(nan, axis=0, tie_break_left=True)
    tl.store(index_ptr + row, tl.where(tl.max(nan, axis=0) > 0, first_nan, largest))

@triton.jit
def taken(index_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at // 8, mask=at < n, other=0)
    tl.store(out_ptr + at, tl.load(table_ptr + index * 8 + at % 8, mask=at < n, other=0.0), mask=at < n)

class TakenTriton(Taken):
    def forward(self, x, table):
        if torch.is_grad_enabled() or x.dtype != torch.float32 or table.dtype != torch.float32 or x.dim() != 2:
            return super().forward(x, table)
        if x.shape[1] != 16 or table.shape[0] != 16 or table.shape[1:] != (8,) or not x.numel():
            return super().forward(x, table)
        if not x.is_contiguous() or not table.is_contiguous():
            return super().forward(x, table)
        index = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        out = torch.empty(x.shape[0], 8, device=x.device)
        largest[(x.shape[0],)](x, index, BLOCK=16)
        taken[(triton.cdiv(out.numel(), 1024),)](index, table, out, out.numel(), BLOCK=1024)
        return out
"""


@pytest.mark.slow
def test_a_kernel_that_takes_by_an_index_of_the_kernel_before_is_not_given_half_of_the_index(validate):
    verdict = validate(MODULE, "Taken", KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
