"""A planted slow-down is found by a validation on a real GPU with a real store, an equal kernel never is."""

from __future__ import annotations

import pytest

from kernel_lsp import kernel_file
from tests.validation.modules import DOUBLE_KERNEL, LARGE_DOUBLE

from .conftest import over, target

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(900)]

MODULE = "import torch\nfrom torch import nn\n" + LARGE_DOUBLE
KERNEL = "import torch\nimport triton\nimport triton.language as tl\n\nfrom module import Double\n" + DOUBLE_KERNEL


async def test_a_slow_down_of_8_percent_is_found_and_an_equal_kernel_is_not(make_jobs, module, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LSP_STORE", str(tmp_path / "store.sqlite"))
    jobs, path = make_jobs(device="cuda"), module(MODULE)
    kernel = kernel_file.find_kernel(path, "Double")
    kernel.parent.mkdir()
    before = KERNEL.replace("{share}", "1.0")

    async def validated(body: str):
        header = {"source": "module.py::Double", "class": "Double", "generator": "by hand"}
        kernel.write_text(kernel_file.assemble(header, body))
        job = await over(jobs.submit("validate", target(path, "Double"), path), 300)
        assert job.state == "done", job.error
        (validated,) = job.report.candidates
        assert job.report.chosen == 0, validated.verdict
        return job.report, validated.measurement.comparison

    report, comparison = await validated(before)
    assert comparison is None and report.regression == ""  # there is none before it

    for number in range(5):
        report, comparison = await validated(before + f"VERSION = {number}\n")
        assert comparison is not None and not comparison.missing, (comparison, report.candidates[0].measurement)
        assert report.regression == "", report.regression

    report, comparison = await validated(KERNEL.replace("{share}", "1.08"))
    assert comparison.ratio.low > 1.05, comparison
    assert "instead of" in report.regression and report.regression.endswith("Changed: kernel.")

    job = await over(jobs.submit("restore", target(path, "Double"), path, body=comparison.body), 300)
    assert job.state == "done", job.error
    assert "* 1.0)" in kernel_file.read(kernel).body
    report, comparison = await validated(before)
    assert report.regression == ""
