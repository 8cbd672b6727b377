"""Records made by hand."""

from kernel_lsp import candidate_notes, class_schema, errors, schema
from kernel_lsp.evaluation.records import Record
from kernel_lsp.suites.problem import Problem

COLLAPSED = candidate_notes.written(3, ["aten.cat.default"], ["sum"])
VERSIONS = {"kernel-lsp": "0.2", "python": "3.12.3", "torch": "2.11.0", "triton": "3.6.0", "driver": "580.1"}


def timing(median: float) -> schema.Timing:
    return schema.Timing(median, 0.98 * median, 1.03 * median, 50)


def problem(number: int, level: int | None = 1, name: str = "Op", trait: str = "") -> Problem:
    stem = f"{number}_{name}"
    return Problem(
        "kernelbench", f"level{level}/{stem}", stem, f"level{level}/{stem}.py", "Model", level, number, trait
    )


def validated(
    eager: float | None = None,
    status: schema.Status = "ok",
    close: bool | None = None,
    kernel: float = 100.0,
    note: str = "",
    **modes: float,
) -> schema.Validated:
    """A candidate whose kernel takes ``kernel`` µs; ``eager``, ``default``, ``max_autotune``, … in µs, too."""
    measurement = None
    if eager is not None:
        shape = schema.ShapeMeasurement(
            [class_schema.TensorSpec("x", [8, 32], "float32")], timing(eager), kernel=timing(kernel)
        )
        for mode, time in modes.items():
            if mode == "default":
                shape.compiled = timing(time)
            else:
                shape.compiled_modes[mode.replace("_", "-")] = timing(time)
        measurement = schema.Measurement([shape], schema.Device("Test GPU", "cuda"))
    verdict = schema.Verdict(
        status, "" if status == "ok" else "off by 2", mode="gpu", error=1e-7, eager_error=2e-7, within_1e2=close
    )
    return schema.Validated(schema.Candidate("pass", "synthesizer", note), verdict, measurement)


def report(*candidates: schema.Validated, **fields) -> schema.Report:
    chosen = next((i for i, one in enumerate(candidates) if one.verdict.status in schema.CORRECT), None)
    device = schema.Device("Test GPU", "cuda", torch="2.11.0", triton="3.6.0", driver="580.1")
    given = {"chosen": chosen, "device": device, "seconds": {"ready": 0.5, "report": 20.0}} | fields
    return schema.Report(schema.Target("", "Model", fingerprint="abc"), candidates=list(candidates), **given)


def record(of: Problem, about: schema.Report | None = None, status: str = "ok", **fields) -> Record:
    given = {
        "mode": "eval",
        "seconds": 10.0,
        "versions": VERSIONS | {"device": "Test GPU"},
        "machine": "aa11",
        "at": "2026-11-21T10:00:00+00:00",
    }
    return Record(of, status=status, report=schema.to_json(about) if about is not None else None, **given | fields)


def not_lowered(of: Problem, op: str = "aten.conv2d.default", detail: str = "") -> Record:
    error = errors.NothingToLower(class_name="Model", op=op, detail=detail)
    return record(of, status="not-lowered", reason=str(error), error=error.to_json())


def suite() -> list[Record]:
    """Four problems of level 1 and two of level 2: 2×, 4×, 8× and 0.5× eager; one wrong but close, one not lowered."""
    return [
        record(problem(1), report(validated(200, close=True, default=110), memory={"device": 2**30, "host": 2**31})),
        record(problem(2), report(validated(400, close=True, default=400, note=COLLAPSED)), seconds=30.0),
        record(problem(3, trait="constant"), report(validated(800, close=True))),
        record(problem(4), report(validated(50, "slower", close=False), memory={"device": 3 * 2**30})),
        record(problem(1, 2), report(validated(300, "wrong", close=True)), "wrong", reason="out[0] is off by 2."),
        not_lowered(problem(2, 2)),
    ]
