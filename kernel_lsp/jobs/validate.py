"""The pipeline of a validation: read the kernel file, validate its body again, bring its header up to date."""

from __future__ import annotations

from kernel_lsp import claims, kernel_file, schema, speedup, why_eager
from kernel_lsp.jobs import baselines, header, job_store, regressions, several_examples, stored_verdicts
from kernel_lsp.jobs.run import Run
from kernel_lsp.store.validations import Known, Validation

#: what a kernel is found to be whose class computes something else by now, or has other parameters
_UNFIT = ("wrong", "not-drop-in")


async def validate(run: Run) -> None:
    """Fill ``run.report``; put verdict, measurement and fingerprint into the header, unless the user edited the file.

    Raises:
        UserError: no kernel file, a damaged one, the class cannot be run, …
    """
    job, report = run.job, run.report
    kernel = run.kernel
    parsed = kernel_file.read(kernel)
    report.file = str(kernel)
    job.precision = parsed.precision
    unchanged = run.take_fingerprint() == parsed.fingerprint
    await run.require_inputs()

    await run.start_worker()
    await job_store.keep_devices(run.settings, run.worker.hello)
    known = await stored_verdicts.known(run, parsed)
    report.before = _before(parsed, known, job.target.class_name)
    text = parsed.header
    # The file warns where the class is no longer the one it was validated with: that is to be the class of now.
    renews = job.write and not parsed.edited
    candidate = schema.Candidate(
        source=why_eager.renewed(parsed.body, run.source_digest()) if renews else parsed.body,
        generator=parsed.generator,
        note=str(text.get("note", "")),
        variant=str(text.get("variant", "")),
        pinned=text.get("pinned") is True,
        precision=parsed.precision,
    )
    run.progress("validating", f"Validating {kernel.name}", 20)
    async with run.timing():
        measure = "none" if job.follow_up else "eager"
        validated = await several_examples.validate(run, candidate, measure, lambda fraction: 20 + 75 * fraction)
    assert validated is not None  # with no candidate before it, validate raises instead
    misfits = bool(several_examples.unserved(validated)) and any(
        one.status == "eager" for one in validated.verdict.examples
    )
    if not _was_wrong(parsed):  # then the change of the class is not why
        sides = _unshown(validated.verdict)
        if sides and (_was_correct(known) or await stored_verdicts.fitted_the_graph(run, parsed)):
            sides = ""  # names changed, and not what is computed
        _name_outdated(parsed, validated.verdict, job.target.class_name, unchanged, misfits, sides)
    if job.follow_up and known.valid is not None:
        _keep_times(report, known.valid, validated)
    elif not job.follow_up:
        await regressions.compare(run, validated, known.valid)
    report.chosen = 0 if validated.verdict.status in schema.CORRECT else None
    if run.on_gpu and not job.follow_up:
        await baselines.add(run)
    if report.chosen is not None:
        report.regression = speedup.regression(validated.measurement, run.settings.regression_threshold)
    else:
        candidate.source = parsed.body  # it is not renewed: the verdict is about the file as it stays
    report.why = validated.verdict.reason or report.regression
    await stored_verdicts.keep(run, validated)

    if renews:
        claimed = parsed.claim.measurement if parsed.claim is not None else None
        # No GPU this time: the figures from the last one stand, with the device they name.
        stands = unchanged and not _timed(validated.measurement) and _timed(claimed)
        measurement = claimed if stands else validated.measurement
        updated = header.renewed(text, header.findings(job.target.fingerprint, report, validated, measurement))
        if updated != text or candidate.source != parsed.body:
            run.progress("writing", f"Updating {kernel.name}", 97)
            kernel_file.write(kernel, kernel_file.assemble(updated, candidate.source), parsed.source)
    elif parsed.edited:
        report.why = f"{report.why} The file was edited since it was written; its header was left as it is.".strip()


def _was_wrong(parsed: kernel_file.KernelFile) -> bool:
    """Whether the kernel was wrong for the class that it was validated with last."""
    return parsed.claim is not None and parsed.claim.verdict.status in _UNFIT


def _was_correct(known: Known) -> bool:
    """Whether this machine found the kernel correct for the class as it is now."""
    return known.valid is not None and known.valid.verdict.status in schema.CORRECT


def _name_outdated(
    parsed: kernel_file.KernelFile,
    verdict: schema.Verdict,
    class_name: str,
    unchanged: bool,
    misfits: bool,
    sides: str,
) -> None:
    """A kernel that the class has been changed away from since is out of date: neither a cheat nor the user's mistake.

    Where the header has that verdict its fingerprint is of the class as it was then. ``misfits``: of several examples one is in no
    envelope, while an envelope has no example. ``sides``: those of comparisons that no input
    shows, in words; "" also where the kernel was found correct for the class as it is now, or for its graph, before.
    """
    known = parsed.claim is not None and parsed.claim.verdict.status == "outdated"
    if parsed.edited or (unchanged and not known):
        return
    changed = f"{class_name}, or something it uses, changed since its kernel was written"
    if verdict.reason == schema.NO_LAUNCH or (misfits and verdict.status in schema.CORRECT):
        verdict.reason = f"{changed}: the kernel does not fit any more, and calls with the example inputs run eagerly; {schema.GENERATE_AGAIN}"
    elif verdict.status in schema.CORRECT and sides:
        # It may be that the change lies there. Correct, it would be taken to be of the class of now.
        verdict.reason = f"{changed}, and whether the kernel fits {sides} is not known, since no input shows it; {schema.GENERATE_AGAIN}"
    elif verdict.status in _UNFIT:
        verdict.reason = f"{changed}, and the kernel does not fit any more; {schema.GENERATE_AGAIN} ({verdict.reason})"
    else:
        return
    verdict.status = "outdated"


def _unshown(verdict: schema.Verdict) -> str:
    """``where x > 6 at model.py:12``, the first side of a comparison that no result shows; "" where all do."""
    found = [limit for limit in verdict.limits if limit.endswith(schema.UNSHOWN)]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return found[0].removesuffix(schema.UNSHOWN).strip() + more if found else ""


def _keep_times(report: schema.Report, known: Validation, validated: schema.Validated) -> None:
    """Put the times of the validation before, and what it said of them, beside a verdict that was reached without any."""
    if not _timed(validated.measurement) and _timed(known.measurement):
        validated.measurement, report.device = known.measurement, known.device or report.device
        for found, before in zip(validated.verdict.examples, known.verdict.examples, strict=False):
            found.eager, found.kernel = before.eager, before.kernel
    if known.verdict.status == "slower" and validated.verdict.status == "ok":
        validated.verdict.status, validated.verdict.reason = known.verdict.status, known.verdict.reason


def _timed(measurement: schema.Measurement | None) -> bool:
    return measurement is not None and any(shape.kernel for shape in measurement.shapes)


def _before(parsed: kernel_file.KernelFile, known: Known, class_name: str) -> str:
    """What was known before this validation: by this machine, or by the file's own word alone."""
    if known.valid is not None:
        return f"was validated on this machine on {known.valid.validated_at[:10]} ({_figure(known.valid)})"
    if known.before is not None:
        at = known.before.validated_at[:10]
        return f"was validated on this machine on {at} {known.changed} ({_figure(known.before)} then)"
    if known.earlier is not None:
        at = known.earlier.validated_at[:10]
        return (
            f"was validated on this machine on {at} for an earlier text of {class_name}, or of something it uses "
            f"({_figure(known.earlier)} then)"
        )
    if parsed.edited:
        return "was edited since it was written; not validated on this machine before"
    if parsed.claim is None:
        return "holds no verdict; not validated on this machine before"
    return f"{claims.said(parsed.claim)}; not validated on this machine before"


def _figure(found: Validation) -> str:
    """``2.31× eager, 50.0 µs``, or the status of a kernel that was not correct."""
    shapes = found.measurement.shapes if found.measurement is not None else []
    time = f", {shapes[0].kernel.median:.1f} µs" if shapes and shapes[0].kernel is not None else ""
    return claims.figure(claims.Claim(found.verdict, found.measurement)) + time
