"""A kernel that was validated for one class is proposed for another one that computes the same; real workers."""

import ast
from types import SimpleNamespace

import pytest

from kernel_lsp import class_schema, kernel_file, why_eager
from kernel_lsp.generators import recall
from kernel_lsp.jobs.client import Worker
from kernel_lsp.store import recalled
from kernel_lsp.store.graphs import Graph
from kernel_lsp.store.kernels import Kernel

from .conftest import over, target

FIRST = """
import torch
from torch import nn

class Fused(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.inner = nn.ModuleDict({"proj": nn.Linear(width, width)})
        self.eps = 1e-5
        self.register_buffer("shift", torch.zeros(width))

    def forward(self, hidden, gate=None, flag=True):
        h = torch.sigmoid(self.inner["proj"](hidden)) * gate
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps) * self.scale + self.shift

def get_inputs():
    return [torch.randn(8, 64), torch.randn(8, 64)]
"""

# Other names and another order of the constructor, in a file that no import statement can name.
COPY = """
import torch
from torch import nn

class Blend(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.register_buffer("beta", torch.zeros(width))
        self.dense = nn.Linear(width, width)
        self.epsilon, self.gamma = 1e-5, nn.Parameter(torch.ones(width))

    def forward(self, x, mask=None, flag=True):
        '''x and mask.'''
        y = torch.sigmoid(self.dense(x)) * mask
        variance = y.pow(2).mean(-1, keepdim=True)
        return y * torch.rsqrt(variance + self.epsilon) * self.gamma + self.beta

def get_inputs():
    return [torch.randn(8, 64), torch.randn(8, 64)]
"""


@pytest.fixture
def asked(monkeypatch):
    """The methods that workers are asked for."""
    methods = []
    request = Worker.request

    async def remember(self, method, *args, **kwargs):
        methods.append(method)
        return await request(self, method, *args, **kwargs)

    monkeypatch.setattr(Worker, "request", remember)
    return methods


@pytest.fixture
def store(tmp_path, monkeypatch):
    path = tmp_path / "store" / "store.sqlite"
    monkeypatch.setenv("KERNEL_LSP_STORE", str(path))
    return path


def sources_of(job):
    return [(source.generator, source.samples, source.problem) for source in job.report.sources]


def jit_functions(source):
    """The kernels' arguments and bodies. A kernel that is the only one is called by its class."""
    kernels = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.decorator_list]
    return [[ast.dump(part) for part in (n.args, *n.body)] for n in kernels]


@pytest.mark.slow
async def test_a_renamed_copy_is_given_the_kernel_at_once(make_jobs, module, store, asked):
    """One test, because a worker takes seconds to warm up."""
    jobs, first = make_jobs(device="interpreter"), module(FIRST, "first.py")
    job = await over(jobs.submit("generate", target(first, "Fused"), first))
    assert job.state == "done", job.error
    ((name, candidates, problem),) = sources_of(job)
    assert (name, problem) == ("synthesizer", "") and candidates > 1  # nothing was in the store: recall was not asked
    assert asked == ["synthesize", "validate"]
    graph = job.report.specimen.graph
    (kept,) = recalled.find(graph, job.report.device.name, store)
    assert kept.graph.state == ["inner.proj.weight", "inner.proj.bias", "scale", "shift"]
    assert kept.graph.forward == ["hidden", "gate", "flag"]
    written = kernel_file.read(kernel_file.find_kernel(first, "Fused"))

    alone = make_jobs(device="interpreter", generators=["recall"])
    copy = module(COPY, "9_copy.py")
    job = await over(alone.submit("generate", target(copy, "Blend"), copy))
    assert job.state == "done", job.error
    assert job.report.specimen.graph == graph
    (validated,) = job.report.candidates
    assert (validated.candidate.generator, validated.verdict.status) == ("recall", "ok"), validated.verdict
    assert validated.candidate.note.startswith("10 of 10 ops in Triton; of Fused (first.py), validated on 20")
    assert asked[2:] == ["interface", "validate"]
    file = kernel_file.read(kernel_file.find_kernel(copy, "Blend"))
    assert (file.generator, file.class_name) == ("recall", "Blend")
    assert file.claim.verdict.status == "ok"
    assert '_load_module("../9_copy.py", "9_copy")' in file.body and "class BlendTriton(Blend)" in file.body
    assert "self.dense.weight," in file.body and "self.epsilon == 1e-05" in file.body
    for name in ("Fused", "fused(", "first", "self.proj", "self.inner", "self.eps ", "self.scale", "self.shift"):
        assert name not in why_eager.without(file.body)
    assert jit_functions(file.body) == jit_functions(written.body) != []

    # Of the class itself, its own kernel comes first, as it is.
    job = await over(alone.submit("generate", target(first, "Fused"), first))
    assert job.report.candidates[0].candidate.generator == "recall"
    assert kernel_file.read(kernel_file.find_kernel(first, "Fused")).body == written.body

    # Beside the synthesizer, which writes the same: a kernel that was edited since is not taken for its.
    job = await over(jobs.submit("generate", target(copy, "Blend"), copy))
    assert sources_of(job)[0] == ("recall", 0, "what was written by rule is left to the synthesizer")
    assert job.report.candidates[job.report.chosen].candidate.generator == "synthesizer"

    # Nothing for what computes something else; the class is looked at once for both generators.
    del asked[:]
    similar = module(COPY.replace("y * torch.rsqrt", "y * torch.sqrt"), "similar.py")
    job = await over(jobs.submit("generate", target(similar, "Blend"), similar))
    assert job.state == "done", job.error
    assert sources_of(job)[0] == ("recall", 0, "no kernel for the same graph is in the store")
    assert job.report.candidates[job.report.chosen].candidate.generator == "synthesizer"
    assert asked == ["synthesize", "validate"]

    # Nor for a job with other settings, nor in training mode.
    strict = make_jobs(device="interpreter", bounds="check")
    third = module(COPY.replace("Blend", "Third"), "third.py")
    job = await over(strict.submit("generate", target(third, "Third"), third))
    assert sources_of(job)[0] == ("recall", 0, 'a kernel was validated with bounds = "trust"')
    job = await over(jobs.submit("generate", target(third, "Third"), third, write=False, training=True))
    assert sources_of(job)[0] == ("recall", 0, "this class has no graph that a kernel could be found by")


@pytest.mark.slow
async def test_a_validation_keeps_the_graph_too(make_jobs, module, store, asked):
    """A kernel that somebody brought along is found once it was validated; where rules cannot write one, too."""
    jobs, first = make_jobs(device="interpreter"), module(FIRST, "first.py")
    job = await over(jobs.submit("generate", target(first, "Fused"), first))
    assert job.state == "done", job.error
    body = kernel_file.read(kernel_file.find_kernel(first, "Fused")).body
    store.unlink()
    job = await over(jobs.submit("validate", target(first, "Fused"), first))
    assert job.state == "done", job.error
    (kept,) = recalled.find(job.report.specimen.graph if job.report.specimen else _graph(store), "", store)
    assert kept.kernel.source == body and kept.graph.inputs[0] == class_schema.TensorSpec("hidden", [8, 64], "float32")
    alone = make_jobs(device="interpreter", generators=["recall"])
    copy = module(COPY, "copy_of.py")
    del asked[:]
    job = await over(alone.submit("generate", target(copy, "Blend"), copy))
    assert job.state == "done", job.error
    assert asked == ["interface", "validate"]  # no synthesizer comes next: its work is not done


def _graph(store):
    import sqlite3

    return sqlite3.connect(store).execute("select graph from graphs").fetchone()[0]


async def test_alone_with_nothing_to_recall_it_says_so(make_jobs, module, store):
    jobs, path = make_jobs(device="interpreter", generators=["recall"]), module()
    job = await over(jobs.submit("generate", target(path, "Tiny"), path))
    assert job.state == "failed"
    assert "nothing that was validated as correct is in the store yet" in str(job.error)


@pytest.mark.parametrize("keep", [False, True])
def test_a_kernel_that_keeps_packed_weights_is_proposed_where_the_setting_allows_it(monkeypatch, keep):
    kernel = "class A:\n    def forget_packed_weights(self):\n        pass\n"
    graph = Graph("sha256:1", ["x"], [], [], {})
    one = recalled.Recalled(
        Kernel("sha256:2", kernel, "openai", "", ""),
        graph,
        "A",
        "a.py",
        "2026-01-01",
        True,
        "GPU",
        5.0,
        True,
        2.0,
        "0.1",
    )
    monkeypatch.setattr(recalled, "find", lambda *_: [one])
    monkeypatch.setattr(recall, "adapted", lambda source, *_: source)
    settings = SimpleNamespace(bounds="trust", precision="strict", keep_packed_weights=keep, generators=["recall"])
    request = SimpleNamespace(settings=settings, gpu=None, samples=3)
    found, why = recall._proposed(request, SimpleNamespace(graph="sha256:1", class_name="A"), None, None)
    assert [candidate.source for candidate in found] == ([kernel] if keep else [])
    assert why == ("" if keep else "a kernel that was validated keeps packed weights, and keep_packed_weights is off")
