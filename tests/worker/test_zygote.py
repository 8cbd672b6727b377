"""What a warm process does before it forks."""

from __future__ import annotations

import os

import pytest
import torch

from kernel_lsp.worker import zygote


@pytest.mark.parametrize("visible", [None, "0"])
def test_cuda_is_not_asked_for_gpus_that_nvml_does_not_count(monkeypatch, visible):
    """Once torch has asked it, it refuses CUDA in what is forked, and says nothing of a GPU that is not there."""
    asked = []
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", lambda: asked.append("CUDA") or 1, raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "_initialized", False)
    monkeypatch.setattr(torch.cuda, "_cached_device_count", None)
    monkeypatch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    monkeypatch.setattr(torch.cuda, "_raw_device_count_nvml", lambda: -1)
    with zygote._gpus_counted_by_nvml_alone():
        assert not torch.cuda.is_available()
    assert not asked
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == visible
    assert torch.cuda.is_available() and asked  # in a forked process, for instance

    asked.clear()
    monkeypatch.setattr(torch.cuda, "_raw_device_count_nvml", lambda: 1)
    with zygote._gpus_counted_by_nvml_alone():
        assert torch.cuda.is_available() and os.environ.get("CUDA_VISIBLE_DEVICES") == visible
    assert not asked
