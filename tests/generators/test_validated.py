"""Answers put together with the module, validated by a real worker under Triton's interpreter."""

from pathlib import Path

import pytest

from kernel_lsp import schema
from kernel_lsp.class_schema import Subject
from kernel_lsp.generators.answers import extract
from kernel_lsp.generators.assembly import assemble
from tests import nursery
from tests.worker.worker_client import Client

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "samples"

OWN = '''
import torch
from torch import nn


def halved(x):
    return x * 0.5


class Window(nn.Module):
    """Eager makes its window anew, the answer holds it; both take what is above from here."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.rand(size))
        self.register_buffer("shift", torch.rand(size))

    def launch(self, x):
        return halved(x) * torch.arange(self.size, device=x.device, dtype=x.dtype)

    def forward(self, x, scale=None):
        return self.launch(x) * self.weight + self.shift


def get_inputs():
    return [torch.randn(32, 96)]


def get_init_inputs():
    return [96]
'''
OWN_ANSWER = """
The module:

```python
@triton.jit
def Window(x_ptr, r_ptr, w_ptr, s_ptr, o_ptr, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    c = i % size
    y = tl.load(x_ptr + i, mask=m) * tl.load(r_ptr + c, mask=m) * tl.load(w_ptr + c, mask=m)
    tl.store(o_ptr + i, y + tl.load(s_ptr + c, mask=m), mask=m)


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        ramp = torch.arange(n, dtype=torch.float32)
        self.ramp = ramp
        self.gain = nn.Parameter(torch.rand(n))
        self.register_buffer("offset", torch.rand(n))
        self.columns = n
        self.grid = lambda count: (triton.cdiv(count, 1024),)

    def launch(self, x, out):
        Window[self.grid(x.numel())](x, self.ramp, self.gain, self.offset, out, x.numel(), self.columns, BLOCK=1024)

    @torch.inference_mode()
    def forward(self, inputs):
        out = torch.empty(inputs.shape, device="cuda")
        self.launch(halved(inputs), out)
        return out
```
"""


@pytest.fixture(scope="module")
def worker():
    client = Client(main=nursery.WORKER_MAIN)
    yield client
    client.close()


def validated(worker: Client, path: Path, class_name: str, text: str) -> schema.Verdict:
    where = {"path": str(path), "class_name": class_name, "inputs": None, "device": "interpreter", "seconds": 60}
    about = schema.from_json(Subject, worker.call("slice", **where)["subject"])
    source = assemble(extract(text, "stop"), about, exact=False, generator="kernelllm")
    return schema.from_json(schema.Verdict, worker.call("validate", **where, source=source, measure="none")["verdict"])


@pytest.mark.parametrize(
    ("answer_file", "sample", "class_name"),
    [
        ("rms_norm", "rms_norm", "RMSNorm"),
        pytest.param("swiglu", "swiglu", "SwiGLU", marks=pytest.mark.slow),
        pytest.param("layer_norm_gelu", "layer_norm_gelu", "LayerNormGELU", marks=pytest.mark.slow),
        pytest.param("linear_relu", "linear_relu", "LinearReLU", marks=pytest.mark.slow),
        pytest.param("masked_softmax", "masked_softmax", "MaskedSoftmax", marks=pytest.mark.slow),
        pytest.param("mean_variance", "mean_and_variance", "MeanVariance", marks=pytest.mark.slow),
        pytest.param("group_norm", "group_norm_silu", "GroupNormSiLU", marks=pytest.mark.slow),
        pytest.param("attention_scores", "batched_matmul", "AttentionScores", marks=pytest.mark.slow),
        pytest.param("cross_entropy", "cross_entropy", "CrossEntropy", marks=pytest.mark.slow),
        pytest.param("rotary", "rotary_embedding", "RotaryEmbedding", marks=pytest.mark.slow),
        pytest.param("add_norm", "add_norm", "AddNorm", marks=pytest.mark.slow),
        pytest.param("bias_gelu", "gelu_tanh_half", "BiasGELU", marks=pytest.mark.slow),
    ],
)
def test_a_right_answer_passes_validation(worker, answer_file, sample, class_name):
    text = (HERE / "answers" / f"{answer_file}.txt").read_text("utf-8")
    verdict = validated(worker, SAMPLES / f"{sample}.py", class_name, text)
    assert (verdict.status, verdict.reason) == ("ok", "")
    assert verdict.launches >= 1


def test_so_does_one_with_everything_under_other_names(worker, tmp_path):
    path = tmp_path / "windows.py"
    path.write_text(OWN, "utf-8")
    verdict = validated(worker, path, "Window", OWN_ANSWER)
    assert (verdict.status, verdict.reason) == ("ok", "")
    passed = {check.name: check.detail for check in verdict.checks}
    assert "runs eager" in passed["gradients"]


def test_a_wrong_answer_is_found_wrong_and_not_hidden_by_eager(worker, tmp_path):
    path = tmp_path / "windows.py"
    path.write_text(OWN, "utf-8")
    verdict = validated(worker, path, "Window", OWN_ANSWER.replace("c = i % size", "c = i % size // 2"))
    assert verdict.status == "wrong"


@pytest.mark.slow
def test_a_step_that_would_take_long_is_left_out_and_said(worker):
    """Each row of the example is a launch's program instance here, and torch sums what they write."""
    text = (HERE / "answers" / "cross_entropy.txt").read_text("utf-8")
    verdict = validated(worker, SAMPLES / "cross_entropy.py", "CrossEntropy", text)
    assert verdict.status == "ok"
    assert [limit for limit in verdict.limits if limit.startswith("all rows of the example (its launches take about ")]
    assert "all rows of the example" not in [check.name for check in verdict.checks]
