"""What a module holds under several names: the kernel runs where it still does. Real files, called for real."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp import why_eager
from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture


class Tied(nn.Module):
    """A head that has the embedding's weight, and a layer and its activation that are used twice, where it is told so."""

    def __init__(self, tied: bool = True, again: bool = True) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(12, 8), nn.Linear(8, 12, bias=False)
        if tied:
            self.embedding.weight = self.head.weight
        self.first = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.1))
        self.second = self.first if again else nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.second(self.first(self.embedding(x))))


INDICES = torch.randint(0, 12, (3, 4))


def frozen(kind: Any, **init: Any) -> Any:
    return kind(**init).eval().requires_grad_(False)


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Any:
    module = Tied().eval()
    candidate = synthesize(module, capture(module, (INDICES,)), class_name="Tied", import_from=__name__)[0]
    body = why_eager.added(candidate.source, "Tied")
    path = tmp_path_factory.mktemp("tied") / "tied_triton.py"
    path.write_text(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    return loaded


def test_tied_weights_are_inside(tied: Any) -> None:
    for kernel in (frozen(tied.TiedTriton), copy.deepcopy(frozen(tied.TiedTriton))):
        assert kernel.why_not(INDICES) is None and kernel._in_envelope(INDICES)


@pytest.mark.parametrize(
    ("init", "why"),
    [
        ({"tied": False}, "expected head_weight is embedding.weight, but head_weight is another tensor"),
        ({"again": False}, "expected self.second is first, but self.second is another module"),
    ],
    ids=str,
)
def test_what_is_no_longer_one_tensor_or_module_is_outside(init: dict[str, Any], why: str, tied: Any) -> None:
    kernel, eager = frozen(tied.TiedTriton, **init), frozen(Tied, **init)
    eager.load_state_dict(kernel.state_dict())
    assert torch.equal(kernel(INDICES), eager(INDICES))
    assert kernel.why_not(INDICES) == why


def test_weights_that_are_untied_later_are_outside(tied: Any) -> None:
    kernel = frozen(tied.TiedTriton)
    kernel.embedding.weight = nn.Parameter(torch.randn(12, 8), requires_grad=False)
    assert torch.equal(kernel(INDICES), Tied.forward(kernel, INDICES))
