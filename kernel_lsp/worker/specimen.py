"""The specimen child: find out what the user's class is, and have kernels written for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kernel_lsp import errors, schema
from kernel_lsp.envelope.interface import interface_of
from kernel_lsp.estimating import estimate as estimating
from kernel_lsp.naming import kernel_class
from kernel_lsp.specimen import faking
from kernel_lsp.specimen.looking import Seen, attempt, imported
from kernel_lsp.worker import first_attempt


def warm_up() -> None:
    """One tiny export: the first costs seconds of imports, the next tenths of a second."""
    from kernel_lsp.synthesis import synthesize as synthesize_module
    from kernel_lsp.synthesis.capture import capture

    class Tiny(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x + 1, dim=-1)

    exported = capture(Tiny(), (torch.randn(4, 6),), {})
    exported.module()
    synthesize_module(Tiny(), exported, class_name="Tiny", import_from="tiny")
    fake = faking.mode()
    with faking.within(fake):
        made = torch.nn.Linear(6, 3), torch.rand(4, 6)
    faking.run(made[0], made[1:], {}, fake)
    capture(made[0], made[1:], {})


def introspect(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """Schema.Specimen as JSON, for ``given``'s path, class_name and inputs.

    Raises:
        UserError: the class cannot be imported, constructed or run with its example.
    """
    return _learned(given, emit, lambda seen: schema.to_json(seen.specimen))


def interface(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen and, where there is a graph, the ``class_schema.Interface`` of the class.

    Raises:
        UserError: the class cannot be imported, constructed or run with its example.
    """
    return _learned(
        given, emit, lambda seen: {"specimen": schema.to_json(seen.specimen), "interface": _interface(seen)}
    )


def _interface(seen: Seen) -> dict[str, Any] | None:
    if isinstance(seen.exported, errors.UserError):
        return None
    found = interface_of(seen.module, seen.exported)
    return schema.to_json(found) if found is not None else None  # type: ignore[no-any-return]


def synthesize(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen, the interface and the candidates that the rule-based synthesizer writes.

    Raises:
        NothingToLower: nothing of the class can be written in Triton.
    """
    from kernel_lsp.synthesis import encoder_fast_path
    from kernel_lsp.synthesis import synthesize as write

    def written(seen: Seen) -> dict[str, Any]:
        specimen, exported = seen.specimen, seen.exported
        if isinstance(exported, errors.UserError):
            raise exported
        emit(
            "progress",
            {"stage": "synthesize", "message": f"writing {kernel_class(given['class_name'])}", "fraction": 0.5},
        )
        if given.get("device", "interpreter") != "interpreter":
            encoder_fast_path.use_tanh(seen.module, exported)
        candidates = write(
            seen.module,
            exported,
            class_name=given["class_name"],
            import_from=specimen.module,
            import_file=specimen.file,
            check_indices=given.get("bounds") == "check",
            gpu=given.get("gpu"),
            precision=given.get("precision") or "strict",
            keep_packed_weights=bool(given.get("keep_packed_weights")),
        )
        return {
            "specimen": schema.to_json(specimen),
            "interface": _interface(seen),
            "candidates": [schema.to_json(c) for c in candidates],
        }

    return _learned(given, emit, written)


def explain(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """The specimen and what the synthesizer's stages make of it (``kernel_lsp.synthesis.explain``).

    ``given`` has ``stages`` to tell of, ``gpu`` (the name of a target or None) and ``leave`` (operators that stay with
    torch) beside what ``synthesize`` takes.

    Raises:
        UserError: the class cannot be imported, constructed, run with its example or exported.
    """
    from kernel_lsp.synthesis.explain import explain as told

    def explained(seen: Seen) -> dict[str, Any]:
        if isinstance(seen.exported, errors.UserError):
            raise seen.exported
        emit("progress", {"stage": "synthesize", "message": "following the synthesizer", "fraction": 0.5})
        data = told(
            seen.module,
            seen.exported,
            class_name=given["class_name"],
            stages=given["stages"],
            target_name=given["gpu"],
            left=frozenset(given["leave"]),
            check_indices=given.get("bounds") == "check",
            precision=given.get("precision") or "strict",
            keep_packed_weights=bool(given.get("keep_packed_weights")),
        )
        return {"specimen": schema.to_json(seen.specimen), "explained": data}

    return _learned(given, emit, explained)


def estimate(given: dict[str, Any], emit: Any) -> dict[str, Any]:
    """What a kernel would gain (``class_schema.Estimate``), or None where the class has to have real tensors to be looked at.

    ``given`` has ``gpu``, the name of a target or None, beside what ``synthesize`` takes. Never with real tensors, which an estimate in the background must not allocate.

    Raises:
        UserError: the class cannot be imported, constructed, run with its example or exported.
    """
    user_module, cls = imported(given, emit)

    def without_memory() -> dict[str, Any]:
        try:
            seen = attempt(given, emit, user_module, cls, fake=True)
        except faking.NeedsValues:
            broken = estimating.of_what_breaks(given, user_module, cls)
            return {"estimate": schema.to_json(broken) if broken is not None else None}
        if isinstance(seen.exported, errors.UserError):
            raise seen.exported
        found = estimating.estimate(
            seen.exported,
            class_name=given["class_name"],
            gpu=given.get("gpu"),
            least_bytes=seen.specimen.bytes,
            precision=given.get("precision") or "strict",
        )
        return {"estimate": schema.to_json(found)}

    return first_attempt.attempt(without_memory) or {"estimate": None}


def _learned(given: dict[str, Any], emit: Any, then: Callable[[Seen], dict[str, Any]]) -> dict[str, Any]:
    """``then`` of what there is to see, without tensors in memory where that does, else with real ones."""
    user_module, cls = imported(given, emit)  # before the fork: it is the slow part, and must happen once

    def without_memory() -> dict[str, Any]:
        try:
            seen = attempt(given, emit, user_module, cls, fake=True)
        except errors.UserError as error:  # perhaps only because of what an earlier attempt with fakes left behind
            raise faking.NeedsValues(str(error)) from error
        return then(seen)

    answer = first_attempt.attempt(without_memory)
    return then(attempt(given, emit, user_module, cls, fake=False)) if answer is None else answer
