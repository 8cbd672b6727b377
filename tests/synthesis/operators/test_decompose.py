"""An operator by torch's own definition of it."""

import pytest
import torch

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.operators import decompose
from tests.synthesis.cases import CASES


def test_a_definition_that_holds_for_one_size_leaves_the_sizes_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Following it fixes the sizes for torch; what was exported is for all of them."""
    monkeypatch.setattr(decompose, "_UNSUITABLE", decompose._UNSUITABLE - {"aten.stft"})
    case = CASES["complex_spectrogram"]
    module, x = case.kind().eval(), torch.randn(2, 40)
    text = synthesize(module, capture(module, (x,)), class_name="ComplexSpectrogram", import_from="cases")[0].source
    assert "x.shape[0]" in text and "(2, 5, 11)" not in text
