"""The one-line texts: code lens, inlay hint and diagnostic messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_lsp import claims, packed_weights
from kernel_lsp.analysis import ModuleClass
from kernel_lsp.errors.surface import adapted
from kernel_lsp.naming import kernel_class
from kernel_lsp.speedup import (
    at_precision,
    factor,
    mix_words,
    precision_words,
    skipped_text,
    speedups,
    weighted_shapes,
)

from ..model.class_state import ClassState
from ..model.records import Record
from .titles import GET_MODEL, validate_title

if TYPE_CHECKING:
    from kernel_lsp.class_schema import Estimate, TorchHint
    from kernel_lsp.jobs import Job
    from kernel_lsp.recording.examples import Recorded
    from kernel_lsp.schema import Verdict


def speed(s: ClassState) -> str:
    """``2.31× eager · 1.24× compile``; "not timed" where there is no figure.

    Over recorded shapes ``1.80× eager over 3 shapes · example: 1.24× compile``. A kernel that is not strict says its precision:
    ``2.31× eager · TF32``, and one that keeps packed weights that: ``2.31× eager · packed weights kept``.
    """
    eager, compiled = speedups(s.measurement)
    count = len(weighted_shapes(s.measurement))
    parts = [f"{factor(eager)} eager" + (f" over {count} shapes" if count > 1 else "")] if eager else []
    parts += [("example: " if count else "") + f"{factor(compiled)} compile"] if compiled else []
    parts = parts or ["not timed"]
    kept = [packed_weights.LABEL] if s.verdict is not None and s.verdict.keeps_packed_weights else []
    return " · ".join([*parts, *_precision(s), *kept])


def _precision(s: ClassState) -> list[str]:
    """The precision of a kernel that is not strict, and that the settings ask for another one by now."""
    words = precision_words(s.verdict.held_to) if s.verdict is not None else ""
    if not words:
        return []
    return [f"{words}, {precision_words(s.wanted) or s.wanted} is asked for" if s.wanted else words]


def _before(s: ClassState) -> str:
    """What a kernel was before it became stale."""
    if s.verdict is None:
        return claims.figure(s.claim) if s.claim is not None else ""
    if not s.correct:
        return s.verdict.status
    return speed(s) if speedups(s.measurement)[0] else f"correct{at_precision(s.verdict.held_to)}"


def lens_title(s: ClassState, recorded: Recorded | None = None, estimate: Estimate | None = None) -> str:
    """The text above the class; without a kernel, what one is estimated to gain, and how much of a recorded run it is."""
    if s.running is not None:
        return running_words(s.running)
    if s.kernel is not None and s.pending:
        return "…"
    if s.kernel is None or s.says_nothing:
        share = share_words(recorded) if recorded is not None else ""
        gain = f"est. {estimate.speedup:.1f}×" if estimate is not None and estimate.speedup else ""
        return " · ".join(filter(None, ["Generate Triton kernel", gain, share]))
    if s.outdated:
        return "Kernel out of date · Regenerate"
    if s.stale:
        return f"↻ stale · {'was' if s.verdict is not None else 'says it was'} {_before(s)}"
    if s.before is not None:
        return f"↻ validated {s.changed}"
    if s.verdict is None:
        return f"? not validated here · file says {_before(s)}"
    if not s.correct:
        return f"✗ {s.verdict.status}"
    if s.regression:
        return f"▼ {slower_by(s)} than before · {speed(s)}"
    skipped = f" · {text}" if (text := skipped_text(s.verdict)) else ""
    return f"✓ {speed(s)}{skipped}" if any(speedups(s.measurement)) else f"✓ correct · {speed(s)}{skipped}"


#: What the worker and the pipeline call their stages, as a user would.
_STAGES = {
    "": "queued",
    "introspect": "generating",
    "synthesize": "generating",
    "check": "validating",
    "compile": "compiling",
    "time": "measuring",
    "tune": "tuning",
}


def running_words(record: Record) -> str:
    """``… validating 2/8``: the stage, the candidate of how many, and, once there is one, the verdict so far."""
    job, stage = record.job, _STAGES.get(record.stage, record.stage)
    if stage == "generating" and job is not None and job.kind != "generate":
        stage = "validating"  # the kernel is there; the class is imported and looked at
    validated = job.report.candidates if job is not None and job.report is not None else []
    if job is not None and job.report is not None and job.report.chosen is not None and stage == "measuring":
        best = validated[job.report.chosen]
        return f"✓ {speed(ClassState(measurement=best.measurement, verdict=best.verdict))} · … measuring"
    words = f"… {stage}"
    if stage == "validating" and job is not None and job.kind == "generate":
        number = job.number or len(validated) + 1
        words += f" {number}"
        expected = sum(source.expected or source.samples for source in job.report.sources) if job.report else 0
        words += f"/{expected}" if expected > number else ""
    return words


def slower_by(s: ClassState) -> str:
    """As in ``8 % slower``; without a number where none was measured."""
    found = s.measurement.comparison if s.measurement is not None else None
    return f"{found.ratio.value - 1:.0%} slower".replace("%", " %") if found and found.ratio else "slower"


def verdict_words(name: str, s: ClassState) -> str:
    """The message of kernel-valid, kernel-slower, kernel-regressed, kernel-outdated and kernel-wrong."""
    assert s.verdict is not None
    kernel = kernel_class(name)
    if s.outdated:
        # What differs stands in the hover, beside which VS Code shows this.
        return f"{kernel} is out of date: {name}, or something it uses, changed since. Generate it again."
    if not s.correct:
        reason = s.verdict.reason or s.verdict.status
        return f"{kernel} is not usable ({s.verdict.status}): {reason}"
    skipped = f" Checks: {text}." if (text := skipped_text(s.verdict)) else ""
    correct = f"correct{at_precision(s.verdict.held_to)}"
    eager, compiled = speedups(s.measurement)
    device = s.measurement.device if s.measurement is not None and s.measurement.device is not None else s.device
    where = f" on {device.name}" if device is not None else ""
    if eager is None:
        missing = s.measurement.missing if s.measurement is not None else ""
        checked = " under Triton's interpreter" if s.verdict.mode == "interpreter" else where
        why = f": {missing.rstrip('.')}." if missing else "."
        return f"{kernel} is {correct}{checked}; its speed was not measured{why}{skipped}"
    mix = mix_words(s.measurement)
    figures = f"{factor(eager)} eager{f' {mix}' if mix else ''}, " + (
        f"{factor(compiled)} torch.compile{' at the example' if mix else ''}"
        if compiled
        else "torch.compile not measured"
    )
    if s.regression:
        return f"{kernel} is {correct}, but lost speed{where}. {s.regression}"
    slower = " It is no faster than what PyTorch does already." if s.verdict.status == "slower" else ""
    return f"{kernel} is {correct}: {figures}{where}.{slower}{skipped}"


def wanted_words(name: str, s: ClassState) -> str:
    """What is said of a kernel that is less exact than the setting ``precision`` asks for; "" of any other."""
    if not s.wanted or s.kernel is None:
        return ""
    words = precision_words(s.kernel.precision)
    return f"The kernel was asked for at {words}; precision = {s.wanted} is set by now. Generate it again for that."


def stale_words(name: str, s: ClassState) -> str:
    """The message of kernel-stale, with what the kernel was before."""
    was = f" It was {_before(s)}." if s.verdict is not None else ""
    was = f" The file {claims.said(s.claim)}; not validated here." if s.verdict is None and s.claim is not None else was
    return f"{s.stale}{was} Save, or choose “{validate_title(name)}”, to validate it again."


def claim_words(name: str, s: ClassState) -> str:
    """The message of kernel-not-validated."""
    assert s.claim is not None
    kernel = kernel_class(name)
    return f"The file of {kernel} {claims.said(s.claim)}; not validated here. Choose “{validate_title(name)}”."


def before_words(name: str, s: ClassState) -> str:
    """The message of kernel-not-validated where this machine validated the kernel with other versions."""
    assert s.before is not None
    then = ClassState(verdict=s.before.verdict, measurement=s.before.measurement)
    kernel = kernel_class(name)
    return f"{kernel} was validated {s.changed}. It was {_before(then)}. Choose “{validate_title(name)}”."


def no_inputs_words(c: ModuleClass) -> str:
    """The message of a class without example inputs."""
    return f"No example inputs for {c.name}: kernel-lsp needs them to validate a kernel (action: Add example inputs)."


def recorded_words(recorded: Recorded) -> str:
    """As in ``8 shapes recorded from train.py, 97 % of the time in two. 12 % of train.py's forward.``."""
    from kernel_lsp.recording import examples

    return examples.words(recorded)


def share_words(recorded: Recorded) -> str:
    """As in ``12 % of train.py's forward``."""
    from kernel_lsp.recording import examples

    return examples.share_words(recorded)


def no_model_words() -> str:
    """The hint after a generation for which no language model was there."""
    return (
        "No language model is here, so only the synthesizer proposed kernels. "
        f"The action “{GET_MODEL}” or `kernel-lsp models pull kernelllm` fetches one."
    )


#: how the kernels of generators without a model came about
_WRITTEN = {"synthesizer": "written by rule", "recall": "known from an earlier validation"}


def outcome_words(job: Job) -> str:
    """What came of a job that is over: ``Correct: 2.31× eager · 1.24× compile``, ``No correct kernel: …``."""
    if job.state == "failed":
        return str(job.error)
    if job.state == "cancelled":
        return "Cancelled"
    report = job.report
    if report is None or not report.candidates:
        return "No correct kernel"
    if report.chosen is None:
        return _unusable_words(job, report.candidates[0].verdict)
    chosen = report.candidates[report.chosen]
    state = ClassState(verdict=chosen.verdict, measurement=chosen.measurement)
    words = f"Correct{': ' if any(speedups(state.measurement)) else ', '}{speed(state)}"
    if job.kind != "generate":
        return f"{words}. {adapted(report.why)}" if report.why else words
    if not any(source.model for source in report.sources):  # it is by rule, as always
        return words
    name = chosen.candidate.generator
    return f"{words}; {_WRITTEN.get(name, f'written by {name}')}"


def _unusable_words(job: Job, verdict: Verdict) -> str:
    reason = adapted(verdict.reason) or verdict.status
    if job.kind == "generate":
        return f"No correct kernel: {reason}"
    if verdict.status == "outdated":
        return f"The kernel is out of date: {reason}"
    return f"The kernel is not usable ({verdict.status}): {reason}"


def estimate_words(estimate: Estimate) -> str:
    """As in ``Estimated 2.1× eager by the data sheet of H100, not measured. Eager: 11 launches, 4.2× the least traffic. …``."""
    eager, kernel = _launches(estimate.launches), _launches(estimate.kernel_launches)
    moved = estimate.bytes / estimate.least_bytes if estimate.least_bytes else 0.0
    traffic = f", {moved:.1f}× the least traffic" if moved >= 1.05 else ""
    gain = f"Estimated {estimate.speedup:.1f}× eager by the data sheet of {estimate.target}, not measured"
    return f"{gain}. Eager: {eager}{traffic}. With a kernel: {kernel}."


def _launches(count: int) -> str:
    return f"{count} launch{'es' if count != 1 else ''}"


def torch_hint_words(hint: TorchHint) -> str:
    """The message of slow-in-torch: what torch does, and where that is known from."""
    return f"{hint.message} (Known from {hint.source}.)"
