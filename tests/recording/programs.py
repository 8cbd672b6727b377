"""Programs to record, and running them as a user does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: a package that is started with -m: DataLoader workers that call a module, two shapes, then an exception
TRAIN = """
import torch
from torch.utils.data import DataLoader, Dataset
from shop.layers import Net, Norm

class Noise(Dataset):
    def __init__(self):
        self.norm = Norm(4)

    def __len__(self):
        return 8

    def __getitem__(self, i):
        with torch.no_grad():
            return self.norm(torch.randn(3, 4))[0]

def main():
    torch.set_num_threads(1)
    net = Net(16)
    for _ in range(2):
        for batch in DataLoader(Noise(), batch_size=4, num_workers=2):
            assert batch.shape == (4, 4)
    for step in range(30):
        net(torch.randint(0, 50, (2, 5 if step < 20 else 7)), scale=step / 10).sum().backward()
    net.eval()
    with torch.no_grad():
        net(torch.randint(0, 50, (1, 5)))
    print("trained")
    raise RuntimeError("out of data")

if __name__ == "__main__":
    main()
"""
LAYERS = """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, dim, *, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x, scale=1.0):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * scale

class Net(nn.Module):
    def __init__(self, dim):
        from shop.kernels.norm_triton import NormTriton

        super().__init__()
        self.embed = nn.Embedding(50, dim)
        self.norms = nn.ModuleList([Norm(dim), NormTriton(dim, eps=1e-3)])

    def forward(self, ids, scale=1.0):
        x = self.embed(ids).transpose(0, 1)
        for norm in self.norms:
            x = norm(x, scale=scale)
        return x
"""
#: a kernel in use, as far as recording is concerned: for a first dimension of 5 alone
KERNEL = """# /// kernel-lsp
# source = "shop/layers.py::Norm"
# ///
from shop.layers import Norm

class NormTriton(Norm):
    def _in_envelope(self, x, scale=1.0):
        return x.shape[0] == 5
"""
#: calls one module until it is told to stop
ENDLESS = """
import time
import torch
from torch import nn

class Double(nn.Module):
    def forward(self, x):
        return x * 2.0

double = Double()
while True:
    double(torch.randn(3, 4))
    open("running", "w").close()
    time.sleep(0.01)
"""


def write_package(folder: Path) -> None:
    """The project ``shop`` with ``shop.train``."""
    (folder / "pyproject.toml").write_text("")
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "layers.py").write_text(LAYERS)
    (folder / "shop" / "train.py").write_text(TRAIN)
    (folder / "shop" / "kernels").mkdir()
    (folder / "shop" / "kernels" / "norm_triton.py").write_text(KERNEL)


def record(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kernel_lsp.cli", "record", *arguments]


def environment(folder: Path) -> dict[str, str]:
    """Recordings go into ``folder``; one thread, since the machine's cores are shared."""
    return {**os.environ, "KERNEL_LSP_STORE": str(folder / "store" / "store.sqlite"), "OMP_NUM_THREADS": "1"}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        record(*arguments),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def interrupted(folder: Path, script: str, number: signal.Signals) -> tuple[int, str, dict[str, Any]]:
    """Record a script that never ends, send a signal once it runs: (exit status, standard error, recording)."""
    (folder / "endless.py").write_text(script)
    process = subprocess.Popen(
        record("--output", "out.json", "--", sys.executable, "endless.py"),
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # no terminal that would send Ctrl-C to both
        # A shell that starts the tests in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        until = time.monotonic() + 90
        while not (folder / "running").exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        time.sleep(0.1)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, said, json.loads((folder / "out.json").read_text())
