"""Classes whose names are also names of something else in the kernel file: each is written and is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worker.worker_client import Client, WorkerError

HEAD = "import torch\nfrom torch import nn\n\n\n"

#: name of the class → its module, and what the kernel file has to say
CLASHES = {
    "Mask": (
        "class Mask(nn.Module):\n"
        "    def forward(self, x, mask):\n"
        "        return torch.where(mask, x, 0.0) * 2\n"
        "def get_inputs(): return [torch.randn(4, 8), torch.rand(4, 8) > 0.5]\n",
        "return mask_forward(x, mask)",
    ),
    "x": (
        "class x(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.relu(x) * 3\n"
        "def get_inputs(): return [torch.randn(4, 8)]\n",
        "return x_forward(x)",
    ),
    "triton": (
        "class triton(nn.Module):\n"
        "    def forward(self, triton_kernel):\n"
        "        return torch.relu(triton_kernel) * 3\n"
        "def get_inputs(): return [torch.randn(4, 8)]\n",
        "class tritonTriton(triton_module):",
    ),
}


@pytest.mark.parametrize(
    "name", [name if name == "x" else pytest.param(name, marks=pytest.mark.slow) for name in CLASHES]
)
def test_a_kernel_is_written_and_right(worker: Client, write: Callable[..., str], name: str) -> None:
    text, part = CLASHES[name]
    given = {"path": write(HEAD + text), "class_name": name, "device": "interpreter", "seconds": 60}
    source = worker.call("synthesize", **given)["candidates"][0]["source"]
    assert part in source
    verdict = worker.call("validate", source=source, measure="none", **given)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")


def test_an_argument_that_hides_a_builtin_is_refused_with_its_name(worker: Client, write: Callable[..., str]) -> None:
    text = "class Typed(nn.Module):\n    def forward(self, x, type):\n        return x * type\n"
    path = write(f"{HEAD}{text}def get_inputs(): return [torch.randn(4, 8), torch.randn(4, 8)]\n")
    with pytest.raises(WorkerError, match="its argument type hides a name"):
        worker.call("synthesize", path=path, class_name="Typed", device="interpreter")
