"""Times on a real GPU: cheats that make a kernel look fast, the same kernel against itself, and a planted slow-down."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time

import pytest
import torch

from kernel_lsp.validation import timing
from tests.validation.modules import DOUBLE

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

KERNEL = """
@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    tl.store(y_ptr + at, tl.where(x < 0, 0.0, x) * 2 + 1, mask=mask)

def launch(x):
    y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    double_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y

class DoubleTriton(Double):
    def forward(self, x):
        if x.dtype != torch.float32 or x.numel() == 0 or (torch.is_grad_enabled() and x.requires_grad):
            return super().forward(x)
        return launch(x.contiguous())
"""

_LAST = "        return launch(x.contiguous())\n"

#: name → what the last line of the kernel's file is replaced by
CHEATS = {
    "patched events": """        torch.cuda.Event.elapsed_time = lambda *_: 0.001
        return launch(x.contiguous())
""",
    "work on a side stream": """        if not hasattr(self, "side"):
            self.side = torch.cuda.Stream()
        with torch.cuda.stream(self.side):
            for _ in range(20):
                y = launch(x.contiguous())
        if torch.cuda.is_current_stream_capturing() or x.numel() < 1 << 20:
            torch.cuda.current_stream().wait_stream(self.side)
        return y
""",
    "right for the first hundred calls": """        self.calls = getattr(self, "calls", 0) + 1
        y = launch(x.contiguous())
        return y if self.calls < 100 else torch.empty_like(y)
""",
    "the last answer again where the first numbers are the same": """        key = (tuple(x.shape), int(x.flatten()[0].item() * 8))
        if getattr(self, "key", None) != key:
            self.key, self.answer = key, launch(x.contiguous())
        return self.answer
""",
    "nothing is done where it is captured": """        if torch.cuda.is_current_stream_capturing():
            return self.kept
        self.kept = launch(x.contiguous())
        return self.kept
""",
    "the module is made slow": """        if not hasattr(torch.nn.modules.module, "slowed"):
            torch.nn.modules.module.slowed = torch.nn.modules.module.register_module_forward_pre_hook(
                lambda module, args: torch.cuda._sleep(1000000) if type(module) is Double else None)
        return launch(x.contiguous())
""",
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_kernel_that_only_looks_fast_is_found_out(validate, name):
    verdict = validate(DOUBLE, "Double", KERNEL.replace(_LAST, CHEATS[name]), device="cuda", measure="eager")["verdict"]
    assert verdict["status"] not in ("ok", "slower"), verdict
    print(name, verdict["status"], verdict["reason"])


def test_medians_agree_with_the_spans_of_the_profiler(tmp_path):
    import torch
    from torch.profiler import ProfilerActivity, profile

    from kernel_lsp.validation import host_pace, timing

    path = tmp_path / "double.py"
    path.write_text("import torch, triton, triton.language as tl\nfrom torch import nn\n" + DOUBLE + KERNEL)
    spec = importlib.util.spec_from_file_location("double", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.DoubleTriton().cuda()
    beyond = timing.overhead_by_spans()
    print("beyond the kernels", beyond, "at least", timing.overhead(timing.flusher()))
    assert beyond is not None
    for rows in (1728, 2048, 4096, 16384):
        inputs = timing.rotated((torch.randn(rows, 4096, device="cuda"),), {}, 3)
        call = {"kernel": lambda args, kwargs: kernel(*args)}
        for _ in range(10):  # a host that is late is part of a median, and of no span
            before = host_pace.launch_microseconds(inputs[0][0][0].device)
            with torch.no_grad():
                median = timing.interleaved(call, inputs, beyond=beyond)["kernel"].median
                with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
                    beside = timing.interleaved(call, inputs, beyond=beyond)["kernel"].median
            after = host_pace.launch_microseconds(inputs[0][0][0].device)
            if max(before, after) < host_pace.LATE:
                break
            time.sleep(1.0)
        else:
            pytest.skip(
                f"a launch takes the host {max(before, after):.0f} µs, since other programs have the processors"
            )
        spans = [e.device_time for e in profiler.events() if "double_kernel" in e.name]
        assert len(spans) >= 20
        span = statistics.median(spans)
        print(rows, "rows: events, events beside the profiler, spans:", median, beside, span)
        assert span > 10 and abs(median - span) < 0.03 * span + 0.5  # events are told apart to half a microsecond


def test_the_same_call_twice_is_as_fast_within_two_percent_and_five_percent_more_are_seen():
    import torch

    from kernel_lsp.validation import timing

    x = torch.randn(4096, 4096, device="cuda")
    more = torch.randn(4096 + 205, 4096, device="cuda")  # 5 % more rows
    inputs = [((x.clone(),), {}) for _ in range(3)]
    ratios, slowed = [], []
    with torch.no_grad():
        for _ in range(40):
            calls = {"a": lambda a, k: a[0] * 2, "b": lambda a, k: a[0] * 2, "slow": lambda a, k: more * 2}
            found = timing.interleaved(calls, inputs, 0.3)
            ratios.append(found["a"].median / found["b"].median)
            slowed.append(found["slow"].median / found["a"].median)
    print("same", min(ratios), max(ratios), "slow", min(slowed), max(slowed))
    assert all(0.98 < ratio < 1.02 for ratio in ratios), (min(ratios), max(ratios))
    assert all(ratio > 1.02 for ratio in slowed), (min(slowed), max(slowed))


BUSY = """
import torch
x = torch.randn(4096, 4096, device="cuda")
print("begun", flush=True)
while True:
    x @ x
    torch.cuda.synchronize()
"""


def test_beside_programs_that_keep_the_gpu_busy_an_honest_kernel_does_not_cheat(validate):
    busy = [subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for one in busy:
            assert one.stdout.readline() == b"begun\n"
        for _ in range(3):
            verdict = validate(DOUBLE, "Double", KERNEL, device="cuda", measure="eager")["verdict"]
            assert verdict["status"] in ("ok", "slower"), verdict["reason"]
    finally:
        for one in busy:
            one.kill()
            one.wait()


def test_the_bandwidth_is_not_told_from_a_copy_that_the_cache_holds(monkeypatch):
    import torch

    from kernel_lsp.validation import roofline

    total = torch.cuda.mem_get_info()[1]
    assert roofline.rates()["copy_bandwidth"] > 1e11
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (1 << 20, total))  # other programs hold the rest
    found = roofline.rates()
    assert found["copy_bandwidth"] == 0.0 and found["float16"] > found["float32"] > 0


def test_a_call_of_many_launches_takes_as_long_beside_a_long_one_as_alone():
    """Beside a long one the host would have the head start that its time gives."""
    number = torch.zeros(1, device="cuda")

    def many(*_):
        for _ in range(300):
            number.add_(1)

    def interleaved(calls):
        return timing.interleaved(calls, [((), {})], renew=False)["many"].median

    alone = interleaved({"many": many})
    beside = interleaved({"long": lambda *_: torch.cuda._sleep(20_000_000), "many": many})
    assert abs(beside / alone - 1) < 0.25, (alone, beside)
