"""Facts to make pages from: one that has everything, and pages as trees."""

from xml.etree import ElementTree

from kernel_lsp import class_schema, schema
from kernel_lsp.report_page import Facts

SOURCE = "class Norm(nn.Module):\n    def forward(self, x):\n        return x / 2  # halves\n"
KERNEL = '"""Norm as one Triton kernel."""\nimport triton\n\n\n@triton.jit\ndef norm_kernel(x_ptr):\n    pass\n'


def timing(median: float, low: float | None = None, high: float | None = None) -> schema.Timing:
    return schema.Timing(median, low or 0.95 * median, high or 1.1 * median, 50)


def shape(flops: int | None = 0, **times: schema.Timing | None) -> schema.ShapeMeasurement:
    given = {"eager": timing(231.0), "compiled": timing(124.0), "kernel": timing(100.0, 90.0, 130.0)} | times
    inputs = [class_schema.TensorSpec("x", [8, 32], "float32")]
    return schema.ShapeMeasurement(
        inputs, bytes=200_000_000, flops=flops, roofline=80.0, roofline_share=0.8, bandwidth_share=0.8, **given
    )


DEVICE = schema.Device("Test GPU", "cuda", "9.0", 2.5e12, 1.0e14, "3.12.3", "2.11.0", "3.6.0")


def full(measured: schema.ShapeMeasurement | None = None) -> Facts:
    """A correct, timed kernel of a session, with a second candidate that a language model got wrong."""
    measurement = schema.Measurement([measured or shape()], DEVICE, measured_at="2026-01-02T03:04:05+00:00")
    verdict = schema.Verdict(
        "ok",
        mode="gpu",
        error=3.4e-7,
        eager_error=2.5e-7,
        precision="fp32",
        launches=1,
        checks=[schema.Check("seeds", True, "5 seeds"), schema.Check("odd sizes", True, "x 3×5")],
        kernels=[schema.CompiledKernel("norm_kernel", "cuda:90", 56, 0, 1024, 4)],
        limits=["races between programs"],
    )
    wrong = schema.Verdict(
        "wrong", "x 3×5: relative error 0.5", line=2, checks=[schema.Check("odd sizes", False, "first at [0, 3]")]
    )
    report = schema.Report(
        schema.Target("file:///norm.py", "Norm"),
        class_schema.Specimen(
            "Norm",
            "norm",
            "32",
            "get_inputs()",
            inputs=[class_schema.TensorSpec("x", [8, 32], "float32", dynamic=["s0", None])],
            outputs=[class_schema.TensorSpec("output0", [8, 32], "float32")],
            ops={"aten.div": 2},
            flops=0,
            bytes=2048,
            dynamic={"s0": [2, 2147483647]},
        ),
        device=DEVICE,
        candidates=[
            schema.Validated(schema.Candidate(KERNEL, "synthesizer", "1 of 1 ops in Triton"), verdict, measurement),
            schema.Validated(
                schema.Candidate("import torch\nnothing()\n", "kernelllm", "answer 1", answer="Here it is"), wrong
            ),
        ],
        chosen=0,
        why="The fastest of 1 correct candidates.",
        sources=[
            schema.Source("synthesizer", samples=1, correct=1, best=2.31),
            schema.Source("kernelllm", "facebook/KernelLLM", "cuda:0", 10, 1, tokens=412, tokens_per_second=88.0),
        ],
        seconds={"ready": 0.2, "candidates": 1.5, "report": 4.0},
    )
    facts = Facts.of_report(report)
    facts.module_path, facts.kernel_path = "norm.py", "kernels/norm_triton.py"
    facts.module_source, facts.module_line, facts.kernel_line = SOURCE, 7, 31
    return facts


def tree(page: str) -> ElementTree.Element:
    """The page as a tree: HTML that is well-formed XML, too, has no tag left open and no stray ``<``."""
    head, _, rest = page.partition("\n")
    assert head == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)


def text(page: str) -> str:
    """All that a reader sees or is read, with single spaces."""
    body = tree(page).find("body")
    assert body is not None
    return " ".join(" ".join(body.itertext()).split())
