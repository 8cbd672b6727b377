"""The pipeline of a validation: read the kernel file, judge its body again, bring its header up to date."""

from __future__ import annotations

from kernel_lsp import claims, kernel_file, schema
from kernel_lsp.jobs import baselines, header, validations
from kernel_lsp.jobs.run import Run
from kernel_lsp.store.validations import Validation

_SLOWER_BY = 1.1  # a speedup that shrank by less than this factor is not reported


async def validate(run: Run) -> None:
    """Fill ``run.report``; put verdict, measurement and fingerprint into the header, unless the user edited the file.

    Raises:
        UserError: no kernel file, a damaged one, the class cannot be run, …
    """
    job, report = run.job, run.report
    kernel = run.kernel
    parsed = kernel_file.read(kernel)
    report.file = str(kernel)
    unchanged = run.take_fingerprint() == parsed.fingerprint

    await run.start_worker()
    await validations.keep_devices(run.settings, run.worker.hello)
    known = await validations.known(run, parsed.actual_body)
    report.before = _before(parsed, known)
    text = parsed.header
    candidate = schema.Candidate(
        source=parsed.body,
        generator=parsed.generator,
        note=str(text.get("note", "")),
        variant=str(text.get("variant", "")),
        pinned=text.get("pinned") is True,
    )
    run.progress("validating", f"Judging {kernel.name}", 20)
    async with run.timing():
        measure = "none" if job.follow_up else "eager"
        judged = await run.judge(candidate, measure, lambda fraction: 20 + 75 * fraction)
    assert judged is not None  # with no candidate before it, judge raises instead
    if job.follow_up and known is not None:
        _keep_times(report, known, judged)
    report.chosen = 0 if judged.verdict.status in schema.CORRECT else None
    if run.on_gpu and not job.follow_up:
        await baselines.add(run)
    report.regression = regression(parsed, known, judged)
    report.why = judged.verdict.reason or report.regression
    await validations.keep(run, judged)

    if job.write and not parsed.edited:
        claimed = parsed.claim.measurement if parsed.claim is not None else None
        # No GPU this time: the figures from the last one stand, with the device they name.
        stands = unchanged and not _timed(judged.measurement) and _timed(claimed)
        measurement = claimed if stands else judged.measurement
        updated = header.renewed(text, header.findings(job.target.fingerprint, report, judged, measurement))
        if updated != text:
            run.progress("writing", f"Updating {kernel.name}", 97)
            kernel_file.write(kernel, kernel_file.assemble(updated, parsed.body), parsed.source)
    elif parsed.edited:
        report.why = f"{report.why} The file was edited since it was written; its header was left as it is.".strip()


def _keep_times(report: schema.Report, known: Validation, judged: schema.Judged) -> None:
    """Put the times of the validation before, and what it said of them, beside a verdict that was reached without any."""
    if not _timed(judged.measurement) and _timed(known.measurement):
        judged.measurement, report.device = known.measurement, known.device or report.device
    if known.verdict.status == "slower" and judged.verdict.status == "ok":
        judged.verdict.status, judged.verdict.reason = known.verdict.status, known.verdict.reason


def _timed(measurement: schema.Measurement | None) -> bool:
    return measurement is not None and any(shape.kernel for shape in measurement.shapes)


def _before(parsed: kernel_file.KernelFile, known: Validation | None) -> str:
    """What was known before this validation: by this machine, or by the file's own word alone."""
    if known is not None:
        figure = claims.figure(claims.Claim(known.verdict, known.measurement))
        return f"was validated on this machine on {known.validated_at[:10]} ({figure})"
    if parsed.edited:
        return "was edited since it was written; not validated on this machine before"
    if parsed.claim is None:
        return "holds no verdict; not validated on this machine before"
    return f"{claims.said(parsed.claim)}; not validated on this machine before"


def regression(before: kernel_file.KernelFile, known: Validation | None, judged: schema.Judged) -> str:
    """What to say if the kernel lost speed since it was last measured; "" if it did not, or that cannot be told.

    It is compared with what this machine measured last, else with what the file says. Compared are speedups over eager
    on the same device at the same shapes, and only where the kernel's time of now and then differ by more than their
    spread: a slow moment of the machine slows both down.
    """
    measured, new = known.measurement if known is not None else None, judged.measurement
    than, old = "when last measured", measured
    if not _timed(measured):
        than, old = "its file says", before.claim.measurement if before.claim is not None else None
    if old is None or new is None or judged.verdict.status not in schema.CORRECT:
        return ""
    if (old.device and old.device.name) != (new.device and new.device.name):
        return ""
    then = {_shapes(shape): shape for shape in old.shapes}
    for shape in new.shapes:
        past = then.get(_shapes(shape))
        if past is None or not (past.kernel and past.eager and shape.kernel and shape.eager):
            continue
        speedup_then = past.eager.median / past.kernel.median
        speedup_now = shape.eager.median / shape.kernel.median
        if shape.kernel.low > past.kernel.high and speedup_then > _SLOWER_BY * speedup_now:
            return (
                f"Slower than {than}: {speedup_now:.2f}× eager instead of {speedup_then:.2f}× "
                f"({shape.kernel.median:.1f} µs instead of {past.kernel.median:.1f} µs)."
            )
    return ""


def _shapes(shape: schema.ShapeMeasurement) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((spec.dtype, tuple(spec.shape)) for spec in shape.inputs)
