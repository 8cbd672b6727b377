"""``kernel-lsp record`` on real programs: what is kept, whatever becomes of the program."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from kernel_lsp.recording import examples, files
from tests.recording.programs import ENDLESS, environment, interrupted, run, write_package


@pytest.mark.slow
def test_a_package_with_data_loader_workers_that_ends_in_an_exception(tmp_path: Path) -> None:
    write_package(tmp_path)
    done = run(tmp_path, "--json", "--", sys.executable, "-m", "shop.train")
    assert done.returncode == 1  # the program's own
    assert "RuntimeError: out of data" in done.stderr and "trained" in done.stderr
    found = json.loads(done.stdout)
    assert found["error"] is None and found["script"] == "shop.train" and found["status"] == 1
    assert found["processes"] == 1  # the DataLoader's workers are not recorded
    classes = {record["name"]: record for record in found["classes"]}
    assert set(classes) == {"Net", "Norm"}  # nn.Embedding is torch's
    net, norm = classes["Net"], classes["Norm"]
    assert net["calls"] == 31 and norm["calls"] == 62
    shapes = {(s["args"][0]["tensor"], *s["modes"]): s for s in net["shapes"]}
    assert {key: s["calls"] for key, s in shapes.items()} == {
        ("int64[2, 5]", "training", "grad"): 20,
        ("int64[2, 7]", "training", "grad"): 10,
        ("int64[1, 5]",): 1,
    }
    trained = shapes["int64[2, 5]", "training", "grad"]
    assert trained["args"][0]["below"] <= 50 and trained["trained"]
    assert trained["numbers"]["scale"][:3] == [0.0, 0.1, 0.2]  # a number that varies makes no shape of its own
    assert trained["init"] == {"args": [{"value": 16}], "kwargs": {}}
    assert trained["host"]["runs"] == 20 and trained["host"]["median"] > 0
    # Its generated kernel counts as the class itself, and says which calls it leaves to eager.
    assert norm["kernel_calls"] == 31 and sum(s["outside"] for s in norm["shapes"]) == 10
    first = norm["shapes"][0]
    assert first["args"][0]["order"] == "transposed" and first["args"][0]["stride"] == [16, 80, 1]
    assert {json.dumps(s["init"]["kwargs"]) for s in norm["shapes"]} == {
        '{"eps": {"value": 1e-06}}',
        '{"eps": {"value": 0.001}}',
    }
    # Of all the time in forward Net has all, since nothing else is called at the outermost level.
    assert net["seconds"] == pytest.approx(found["forward_seconds"], rel=1e-6)
    assert 0 < norm["seconds"] < net["seconds"]

    layers = tmp_path / "shop" / "layers.py"
    base = Path(environment(tmp_path)["KERNEL_LSP_STORE"]).parent / "recordings"
    kept = examples.recorded_of(layers, files.find(layers, base))
    assert kept["Net"].calls == 31 and examples.share_words(kept["Net"]) == "100 % of shop.train's forward"


def test_ctrl_c_keeps_what_was_seen(tmp_path: Path) -> None:
    status, said, found = interrupted(tmp_path, ENDLESS, signal.SIGINT)
    assert "KeyboardInterrupt" in said
    assert status == 130
    assert [(record["name"], record["shapes"][0]["args"][0]["tensor"]) for record in found["classes"]] == [
        ("Double", "float32[3, 4]")
    ]
    assert found["classes"][0]["calls"] >= 1
    assert "Double" in said.rpartition("KeyboardInterrupt")[2]  # the table


@pytest.mark.slow
def test_sigterm_keeps_what_was_seen(tmp_path: Path) -> None:
    status, _, found = interrupted(tmp_path, ENDLESS, signal.SIGTERM)
    assert status == 128 + signal.SIGTERM
    assert found["classes"][0]["calls"] >= 1


@pytest.mark.slow
def test_a_killed_program_leaves_what_was_written_last(tmp_path: Path) -> None:
    script = ENDLESS.replace("while True:", "import os, signal\nfor step in range(800):").replace("0.01", "0.005")
    (tmp_path / "endless.py").write_text(script + "os.kill(os.getpid(), signal.SIGKILL)\n")
    done = run(tmp_path, "--json", "--", sys.executable, "endless.py")
    assert done.returncode == 128 + signal.SIGKILL
    assert 100 < json.loads(done.stdout)["classes"][0]["calls"] <= 800


COMPILED = """
import sys
import torch
from torch import nn
from torch._dynamo.utils import counters

class Inner(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([Inner() for _ in range(10)])

    def forward(self, x):
        for inner in self.inner:
            x = inner(x)
        return x

class Broken(Outer):
    def forward(self, x):
        for inner in self.inner:
            torch._dynamo.graph_break()
            x = inner(x)
        return x

for cls in (Outer, Broken):
    net = torch.compile(cls(), backend="eager")
    for n in (3, 3, 5, 5):
        net(torch.randn(n, 4))
whole = torch.compile(lambda net, x: net(x).sum(), backend="eager", fullgraph=True)
net = Outer()
whole(net, torch.randn(3, 4))
net.register_forward_hook(lambda *_: None)
whole(net, torch.randn(3, 4))
net.compile(backend="eager")
net(torch.randn(9, 4))
torch.export.export(Outer(), (torch.randn(3, 4),))
print({name: dict(counters[name]) for name in ("stats", "graph_break", "frames")})
"""


@pytest.mark.slow
def test_torch_compile_makes_the_same_graphs_as_without(tmp_path: Path) -> None:
    (tmp_path / "compiled.py").write_text(COMPILED)
    plain = run(tmp_path, "--class", "NoSuchClass", "--", sys.executable, "-E", "compiled.py")
    assert "started no Python that reads PYTHONPATH" in plain.stderr
    done = run(tmp_path, "--output", "out.json", "--", sys.executable, "compiled.py")
    assert done.stdout == plain.stdout and "unique_graphs" in done.stdout
    classes = {record["name"]: record for record in json.loads((tmp_path / "out.json").read_text())["classes"]}
    assert classes["Outer"]["calls"] == 5 and classes["Broken"]["calls"] == 4
    assert {s["args"][0]["tensor"] for s in classes["Outer"]["shapes"]} == {
        "float32[3, 4]",
        "float32[5, 4]",
        "float32[9, 4]",
    }
    assert "record once without torch.compile" in done.stderr


RANKS = """
import os, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)

def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    net = nn.parallel.DistributedDataParallel(Net())
    for _ in range(10):
        net(torch.randn(3 + rank, 4)).sum().backward()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (os.path.abspath("rendezvous"),), nprocs=2)
"""


@pytest.mark.slow
def test_of_several_ranks_the_first_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    done = run(tmp_path, "--json", "--", sys.executable, "ranks.py")
    assert done.returncode == 0, done.stderr
    (net,) = json.loads(done.stdout)["classes"]
    assert net["calls"] == 10 and [s["args"][0]["tensor"] for s in net["shapes"]] == ["float32[3, 4]"]


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "no-such-program-here")
    assert done.returncode == 2 and "no-such-program-here could not be started" in done.stderr
