"""The top of a report: the verdict in one line, warnings, and the most important figures."""

from __future__ import annotations

from kernel_lsp import claims, number_text, packed_weights
from kernel_lsp.errors.surface import adapted
from kernel_lsp.schema import CORRECT, Measurement, ShapeMeasurement, Verdict
from kernel_lsp.speedup import at_precision, factor, mix_share, mix_words, speedups

from .facts import Facts
from .html import Markup, div, el, span

#: A status as a user would say it.
WORDS = {
    "ok": "correct",
    "slower": "correct, but slower",
    "rejected": "not usable",
    "compile-error": "does not compile",
    "wrong": "wrong results",
    "crashed": "crashed",
    "timeout": "took too long",
    "out-of-memory": "ran out of memory",
    "cheating": "does not do the work itself",
    "outdated": "is out of date",
    "not-drop-in": "does not fit in the module's place",
}


def mark(verdict: Verdict) -> Markup:
    """``✓ correct`` in its colour, with a sign for readers who do not see colours."""
    kind, sign = _kind(verdict)
    return span(f"verdict {kind}", f"{sign} {_said(verdict)}")


def _said(verdict: Verdict) -> str:
    """The status; a kernel that is correct at a lower precision alone, or keeps packed weights, says so."""
    words = WORDS.get(verdict.status, verdict.status)
    if verdict.status not in CORRECT:
        return words
    kept = f", {packed_weights.LABEL}" if verdict.keeps_packed_weights else ""
    return words.replace("correct", f"correct{at_precision(verdict.held_to)}") + kept


def _kind(verdict: Verdict) -> tuple[str, str]:
    if verdict.status == "slower":
        return "warn", "▼"
    return ("good", "✓") if verdict.status in CORRECT else ("bad", "✗")


def summary(facts: Facts) -> tuple[str, str, str]:
    """The colour, the sign and the text of the headline."""
    verdict = facts.verdict
    if verdict is None:
        if facts.running:
            return "none", "…", "No verdict yet."
        if facts.claim is not None:
            return "warn", "?", f"Not validated on this machine. The file {claims.said(facts.claim)}."
        if facts.skipped:
            return "none", "–", "Skipped."
        return ("bad", "✗", "No kernel.") if facts.error else ("none", "–", "No kernel has been validated yet.")
    kind, sign = _kind(verdict)
    if not facts.correct:
        reason = f": {adapted(verdict.reason)}" if verdict.reason else ""
        line = f" (line {verdict.line})" if verdict.line else ""
        return kind, sign, _capital(number_text.stop(f"{WORDS.get(verdict.status, verdict.status)}{reason}{line}"))
    parts = [_capital(_said(verdict))]
    eager, compiled = (number_text.known(ratio) for ratio in speedups(facts.measurement))
    device = facts.measured_on
    mix = mix_words(facts.measurement)
    if eager:
        than_compiled = (
            f" · {factor(compiled)} torch.compile" + (" at the example’s" if mix else "") if compiled else ""
        )
        parts.append(f"{factor(eager)} eager" + (f" {mix}" if mix else "") + than_compiled)
    on = f" on {device.name}" if device is not None and device.kind == "cuda" else ""
    if verdict.mode == "interpreter":
        on = on if eager else " under Triton’s interpreter"
    return kind, sign, (": " if kind == "warn" else ", ").join(parts) + on + ("" if eager else "; not timed")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def top(facts: Facts, level: str = "h1", reasons: bool = True) -> Markup:
    """The page's header and the tiles of figures under it.

    ``level``: the HTML element of the class's name. ``reasons``: whether to say why there are no times, which nothing else
    on the page does then.
    """
    kind, sign, text = summary(facts)
    if reasons and facts.correct and not facts.timed and facts.not_timed:
        text += f" ({facts.not_timed})"
    place = facts.kernel_path or facts.module_path
    heading = [
        div("eyebrow", "Triton kernel for"),
        el(level, facts.class_name),
        el("p", span("sign", sign), " ", text, class_=f"headline {kind}"),
        el("p", _where(facts), class_="hint"),
        el("p", el("code", place), class_="hint") if place else None,
    ]
    return Markup(el("header", heading, banners(facts)) + tiles(facts))


def _where(facts: Facts) -> str:
    device = facts.measured_on
    parts = [device.name] if device is not None and device.kind != "cuda" else []
    if device is not None:
        versions = (("torch", device.torch), ("Triton", device.triton), ("Python", device.python))
        parts += [f"{name} {version}" for name, version in versions if version]
    if facts.measurement is not None and facts.measurement.measured_at:
        parts.append(f"measured {number_text.moment(facts.measurement.measured_at)}")
    if facts.generator:
        parts.append(f"written by {facts.generator}" + (f", {facts.note}" if facts.note else ""))
    return " · ".join(parts) or "Device and versions are not recorded."


def banners(facts: Facts) -> list[Markup]:
    """What limits the rest of the page, one banner each: stale, less exact, not written, slower than before, failed."""
    found: list[tuple[str, str, str]] = []
    if facts.running:
        found.append(("none", "At work", f"{facts.running}. This page shows what was known before."))
    if facts.stale:
        found.append(("warn", "Stale", f"{facts.stale} What follows is about the version before."))
    if facts.outdated:
        found.append(("warn", "Before", f"{facts.outdated} What follows is from then."))
    if facts.less_exact:
        found.append(("warn", "Less exact than asked for", facts.less_exact))
    if facts.claim is not None and facts.verdict is not None:
        found.append(("none", "Claimed", claims.timed_elsewhere(facts.claim)))
    if facts.report is not None and facts.report.before:
        found.append(("none", "Before", f"The file {facts.report.before}."))
    for warning in facts.report.warnings if facts.report is not None else []:
        found.append(("warn", "Not kept", warning))
    if facts.regression:
        found.append(("warn", "Slower than before", facts.regression))
    if facts.measurement is not None and facts.measurement.beside:
        found.append(("warn", "Timed beside other work", f"The GPU was {facts.measurement.beside} meanwhile."))
    if facts.error:
        kind = "none" if facts.skipped else "bad"
        found.append((kind, "The last job failed" if facts.verdict is not None else "Why", facts.error))
    elif facts.verdict is None and facts.report is not None and facts.report.why:
        found.append(("none", "Why", facts.report.why))
    return [
        el("p", el("strong", title), " ", text, class_=f"banner {kind}", role="note") for kind, title, text in found
    ]


def tiles(facts: Facts) -> Markup:
    """The figures that there are, five at most."""
    if facts.verdict is None:
        return Markup("")
    measurement, verdict = facts.measurement, facts.verdict
    eager, compiled = (number_text.known(ratio) for ratio in speedups(measurement))
    shapes = measurement.shapes if measurement is not None else []
    shares = [share for shape in shapes if (share := number_text.known(shape.roofline_share))]
    passed = sum(check.passed for check in verdict.checks)
    beside = "eager’s own " + number_text.error(verdict.eager_error) if verdict.eager_error is not None else ""
    found = [
        _tile("Speed over eager", factor(eager), _over(measurement)) if eager else None,
        _tile("Over torch.compile", factor(compiled), _times(shapes, "compiled")) if compiled else None,
        _tile("Share of the roofline", number_text.share(min(shares)), _least(shares)) if shares else None,
        _tile("Largest error", number_text.error(verdict.error), beside) if verdict.error is not None else None,
        _tile("Checks passed", _counted(verdict, passed), _limits(facts.limits)) if verdict.checks else None,
    ]
    return div("tiles", found) if any(found) else Markup("")


def _over(measurement: Measurement | None) -> str:
    """What the speed over eager is about: the recorded shapes, where some were timed."""
    words, part = mix_words(measurement), number_text.known(mix_share(measurement))
    if not words:
        return _times(measurement.shapes if measurement is not None else [], "eager")
    return words + (f" ({number_text.share(part)} of its time there)" if part else "")


def _times(shapes: list[ShapeMeasurement], other: str) -> str:
    """``376.3 µs → 91.6 µs``, where that is one figure."""
    pairs = [(number_text.timed(getattr(shape, other)), number_text.timed(shape.kernel)) for shape in shapes]
    both = [(a.median, b.median) for a, b in pairs if a is not None and b is not None]
    if len(both) != 1:
        return f"geometric mean of {len(both)} sets of shapes"
    unit = number_text.Microseconds(both[0])
    return " → ".join(map(unit, both[0]))


def _least(shares: list[float]) -> str:
    return "of what the device can do" + (f", the least of {len(shares)}" if len(shares) > 1 else "")


def _limits(limits: list[str]) -> str:
    count = len(limits)
    return f"{count} thing{'s' if count != 1 else ''} could not be checked" if count else "nothing left unchecked"


def _tile(title: str, figure: str, below: str) -> Markup:
    return div("tile", span("name", title), span("figure", figure), span("hint", below))


def _counted(verdict: Verdict, passed: int) -> str:
    """As in ``10 of 10, 14 skipped``."""
    skipped = f", {len(verdict.skipped)} skipped" if verdict.skipped else ""
    return f"{passed} of {len(verdict.checks)}{skipped}"
