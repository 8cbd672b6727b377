"""How much memory a worker's family takes, seen from a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from kernel_lsp import nvml
from kernel_lsp.worker import memory_use

ALLOCATING = """
import asyncio, json, os
from kernel_lsp.worker import memory_use

async def main():
    async with memory_use.watched("interpreter") as before:
        await asyncio.sleep(0.3)
    async with memory_use.watched("interpreter") as found:
        block = bytearray(os.urandom(1 << 16) * (200 << 4))  # 200 MiB
        await asyncio.sleep(2.0)  # looks at a large family are rare, as they may take a twentieth of a processor
        del block
        await asyncio.sleep(0.2)
    print(json.dumps([before, found]))

asyncio.run(main())
"""


def test_what_is_allocated_for_a_while_is_seen():
    """In a process of its own: workers of other tests may end meanwhile."""
    done = subprocess.run([sys.executable, "-c", ALLOCATING], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    before, found = json.loads(done.stdout)
    assert before["host"] > 1 << 20 and found["device"] == 0
    assert found["host"] - before["host"] > 150 << 20


async def test_it_ends_with_what_it_watches_and_hinders_nothing():
    async with memory_use.watched("interpreter") as found:
        pass
    assert set(found) <= {"device", "host"}
    children = nvml.family(os.getpid())
    assert children[0] == os.getpid()


async def test_a_validation_says_what_it_took(own_worker, write):
    worker = own_worker
    text = "import torch\nclass Tiny(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x) + 1\n"
    path = write(text + "def get_inputs(): return [torch.randn(8, 64)]\n")
    asked = {"path": path, "class_name": "Tiny", "device": "interpreter"}
    source = worker.call("synthesize", **asked)["candidates"][0]["source"]
    result = worker.call("validate", source=source, measure="none", seconds=60, **asked)
    assert result["verdict"]["status"] == "ok" and result["memory"]["host"] > 50 << 20
