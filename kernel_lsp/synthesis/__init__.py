"""The rule-based generator: an exported ATen graph becomes readable Triton source.

capture (torch.export) → operators (ATen → graph) → passes (rewrites, and which values share a kernel) → kernel → schedule →
printing (a kernel's text, the host function, the file). ``stages.py`` has those before a schedule is chosen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from kernel_lsp import candidate_notes
from kernel_lsp.schema import MOST_TIMED, Candidate

from .kernel.execution_plan import Lowered
from .passes.layout import LEAST_CHANNELS
from .passes.planes import STEPS
from .printing.source import compose, written
from .schedule.choices import Chosen, choices
from .schedule.replay import estimate, replayable
from .schedule.schedules import Chained, Product, Steps
from .schedule.target import Target, target
from .stages import (
    CHAINED,
    CHANNELS_LAST,
    FOLDED,
    IN_PARTS,
    IN_TILES,
    PLANES,
    WINDOWS,
    check_writable,
    counted,
    failures,
    lowered,
    optional,
    planned,
    told,
)

GENERATOR = "synthesizer"
#: operators that are tried as calls of torch, too
LEFT = {
    "convolutions": frozenset(f"aten.{kind}{rank}d" for kind in ("conv", "conv_transpose") for rank in (1, 2, 3)),
    "recurrent layers": frozenset(["aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu"]),
}
#: schedules in halves that are offered
_ROUNDED = 4
#: schedules of convolutions in planes that are offered beside those that round; of modules with more convolutions than so many the default alone
_PLANES, _FEW = 4, 4
#: candidates that are offered of those in which only convolutions of few channels are in planes
_FEW_CHANNELS = 2
#: convolutions of a module beyond which there are no candidates for their layout and arithmetic but the ones above: each way takes seconds to write
_MOST_CONVOLUTIONS = 64
#: schedules with sums that are not split, of modules where they are by default
_WHOLE = 8
#: schedules with scores in memory where they stay on chip by default, or the other way round
_CHAINED = 4
#: schedules with products in memory where their kernels reduce their rows or columns by default
_STORED = 2
#: kernels of a module beyond which the default schedule is the only one
_MANY = 24
#: the label of the candidate that launches nothing itself but in its first calls
_REPLAYED = "replayed as a CUDA graph"


def synthesize(
    module: torch.nn.Module,
    exported: ExportedProgram,
    *,
    class_name: str,
    import_from: str,
    import_file: str = "",
    check_indices: bool = False,
    gpu: str | None = None,
    precision: str = "strict",
    keep_packed_weights: bool = False,
) -> list[Candidate]:
    """Candidates for ``module``, the default schedule first, then alternatives worth timing.

    ``exported`` comes from ``capture``; ``import_from`` is the module that a kernel file gets the class from, and
    ``import_file`` its file where no import statement can name it (see ``loading``). ``check_indices``: the kernel files raise
    where an index is out of range. ``gpu``: the name of the GPU that schedules are for, by default an H100. ``precision`` and
    ``keep_packed_weights``: the settings.

    Raises:
        NothingToLower: nothing can be written in Triton; with the operator that stopped it.
        NotWritable: the kernels, or the class around them, have no text.
    """
    with told(exported, class_name):
        names = class_name, import_from, import_file
        return _candidates(module, exported, *names, check_indices, gpu, precision, keep_packed_weights)


def _candidates(
    module: torch.nn.Module,
    exported: ExportedProgram,
    class_name: str,
    import_from: str,
    import_file: str,
    check_indices: bool,
    gpu: str | None,
    precision: str,
    keep_packed_weights: bool,
) -> list[Candidate]:
    on = target(gpu)
    pairs: list[tuple[bool, bool]] = []  # whether products share a kernel with the one before, and whether others could
    collapsed: list[bool] = []  # whether sums are taken before linear maps

    def of(
        left: frozenset[str] = frozenset(),
        *,
        halves: bool = False,
        tf32: bool = True,
        few_exact: bool = False,
        joined: bool = True,
        parts: bool = True,
        in_tiles: bool = True,
        windows: bool = True,
        begins_again: int = 0,
        chained: bool | None = None,
        torch_last: bool = False,
        folded: bool = True,
        most: int | None = None,
    ) -> tuple[list[Candidate], Chosen]:
        how: dict[str, Any] = {"halves": halves, "tf32": tf32, "few_exact": few_exact}
        how |= {
            "joined": joined,
            "parts": parts,
            "in_tiles": in_tiles,
            "windows": windows,
            "begins_again": begins_again,
        }
        how |= {"chained": chained, "torch_last": torch_last, "folded": folded}
        found = lowered(exported, left, on, **how, precision=precision, keep_packed_weights=keep_packed_weights)
        pairs.append((bool(found.chained), bool(found.apart)))
        collapsed.append(bool(found.graph.collapsed))
        if halves and not found.rounded:
            return [], {}
        return _scheduled(
            module, exported, found, class_name, import_from, import_file, check_indices, most, on, gpu is not None
        )

    failed: list[dict[str, Any]] = []

    def also(left: frozenset[str] = frozenset(), **how: Any) -> tuple[list[Candidate], Chosen]:
        """What another way than the first gives; nothing where it fails, and the candidates tell of a bug."""
        written: tuple[list[Candidate], Chosen] = [], {}
        words = ["operators left to torch"] if left else []
        words += [f"{name} = {value}" for name, value in how.items() if name != "most"]
        with optional(", ".join(words), class_name, failed):
            written = of(left, **how)
        return written

    called, strict = _operators(exported), precision == "strict"
    convolutions = sum(name in LEFT["convolutions"] for name in _calls(exported))
    # Without a GPU nothing is faster in halves, and torch does not round.
    faster = gpu is not None or precision == "half"
    recurrent = not called.isdisjoint(LEFT["recurrent layers"])
    rounded: list[Candidate] = []
    result: list[Candidate] = []
    chosen: Chosen = {}
    # Where convolutions are rounded, cuDNN's are those that round no more than torch, so that no kernel of ours needs to.
    cudnn = first = strict and faster and bool(convolutions) and not recurrent
    if first:
        rounded = also(halves=True, most=_ROUNDED)[0][:_ROUNDED]
        cudnn = bool(rounded) and not any(pairs[0]) and LEFT["convolutions"].isdisjoint(rounded[0].kept)
    halved = pairs[-1] if pairs else (False, False)
    if not cudnn:
        pairs.clear()
        collapsed.clear()
        result, chosen = of()
    apart: list[Candidate] = []  # recurrences in launches of their own, where several could share one
    if recurrent:
        apart, alone = also(joined=False)
        chosen = alone or chosen
        apart = [other for other in apart if all(other.source != one.source for one in result)]
    if any(IN_PARTS in one.variant for one in result):  # what is measured decides, here too
        result += also(parts=False, most=_WHOLE)[0]
    together = any(pairs[0])
    if together:  # what is measured decides whether scores go through memory
        result += _new(also(chained=not pairs[0][0], most=_CHAINED)[0], result)
    if faster and not first:
        rounded = also(halves=True, most=_ROUNDED)[0][:_ROUNDED]
        halved = pairs[-1]
    if not strict:  # what is not a convolution was rounded before
        rounded = _new(rounded, result)
    if together and gpu is not None:
        other = also(halves=True, chained=not halved[0], most=_CHAINED)[0][:_CHAINED]
        other = other if strict else _new(other, result)
        rounded, result = (rounded + other, result) if rounded else (rounded, result + other)
    into = rounded or result
    if any(FOLDED in one.variant for one in into):  # whether a product is stored before its rows are reduced, too
        into += _new(also(halves=bool(rounded), folded=False, most=_STORED)[0][:_STORED], into)
    exact: list[Candidate] = []
    if rounded:
        scheduled = [one for one in result if CHAINED in one.variant and one not in rounded] if together else []
        exact, apart = [*_default(result), *scheduled, *_in_other_arithmetic(result)], apart[:1]
        planes: list[Candidate] = []
        if IN_TILES in rounded[0].arithmetic:  # what is measured decides whether both operands are split before
            planes += _default(also(halves=True, in_tiles=False, most=1)[0])
        if strict and PLANES in rounded[0].arithmetic.split(", "):  # may be right where the ones before are not
            for elements in STEPS:
                planes += _new(also(halves=True, begins_again=elements, most=1)[0][:1], [*rounded, *planes])
        # torch, which may round convolutions, does not do so with few channels at most sizes
        # convolutions in half precision are what they are in any arithmetic
        rounds = rounded[0].arithmetic != CHANNELS_LAST
        if strict and rounds and convolutions <= _MOST_CONVOLUTIONS and _few_channels(exported):
            found = also(halves=True, few_exact=True, most=_FEW_CHANNELS)[0]
            planes += [one for one in found if one.arithmetic != rounded[0].arithmetic][:_FEW_CHANNELS]
        if strict and rounds and convolutions:  # and with more not at all of them, nor in parts of a deep network
            found = also(halves=True, tf32=False, most=_PLANES if convolutions <= _FEW else 1)[0]
            found = [one for one in found if one.arithmetic != rounded[0].arithmetic][:_PLANES]
            planes += _new(found, planes)
            # What is measured decides whether planes of few channels are written before; other tiles for windows than the first two come later.
            if planes and WINDOWS in planes[0].arithmetic:
                place = len(_default(planes)) + 1
                planes[place:place] = _new(_default(also(halves=True, tf32=False, windows=False, most=1)[0]), planes)
        result = [*rounded, *planes, *exact]
        # Planes take launches of their own, which a small product, or a slow host, waits for longer than for the product in one kernel.
        # So that one is the last of the few that are timed (``schema.MOST_TIMED``).
        if not convolutions and exact and len(rounded) + len(planes) >= MOST_TIMED:
            result = [*rounded[:-1], *planes, rounded[-1], *exact[1:]]
            result.insert(MOST_TIMED - 1, exact[0])
    result += apart
    # What is measured decides; cuDNN is the faster one most often where convolutions are not in halves, and where a recurrence
    # would read all of its weights at each step, and so comes first.
    slow = any(isinstance(schedule, Steps) and schedule.depth for schedule in chosen.values())
    for words, operators in LEFT.items():
        if called.isdisjoint(operators) or not operators.isdisjoint(result[0].kept):
            continue
        left = _default(also(operators, most=1)[0])
        if not left:
            continue
        if words == "convolutions" and gpu is not None and convolutions <= _MOST_CONVOLUTIONS:
            left += _new(_default(also(operators, torch_last=True, most=1)[0]), left)
        for one in left:
            one.variant = ", ".join(filter(None, [f"{words} left to torch", one.variant]))
        if words != "convolutions":
            place = 0 if slow else len(result)
        else:
            said = rounded[0].arithmetic if rounded else ""
            ours = collapsed[0] or "float16 convolutions" in said or CHANNELS_LAST in said
            place = len(_default(result[:2])) if ours else 0
        result[place:place] = left
        if words == "convolutions" and rounded:  # then cuDNN's are the ones that round no more than torch
            result = [one for one in result if not any(one is other for other in exact)]
    if cudnn and all(one.kept == rounded[0].kept for one in result):  # there are none of cuDNN's
        others = also()[0]
        result += [*_default(others), *_in_other_arithmetic(others)]
    # They are validated and timed as schedules of one kernel, under one precision; strict where there is nothing to round.
    under = next((one.precision for one in result if one.precision != "strict"), "strict")
    for place, candidate in enumerate(result):
        candidate.parent, candidate.precision = 0 if place else None, under
        candidate.faults += failed
    return result


def _default(candidates: list[Candidate]) -> list[Candidate]:
    """Those with the default schedule: its launches and their replay, of which either may be the first."""
    return [one for one in candidates if _launched(one) == _launched(candidates[0])]


def _launched(candidate: Candidate) -> str:
    """The label of what is launched, or replayed."""
    return candidate.variant.removesuffix(_REPLAYED).removesuffix(", ")


def _new(candidates: list[Candidate], known: list[Candidate]) -> list[Candidate]:
    """Those whose text is another than that of any of the ``known``."""
    sources = {one.source for one in known}
    return [one for one in candidates if one.source not in sources]


def _in_other_arithmetic(candidates: list[Candidate]) -> list[Candidate]:
    """The first of each arithmetic that the default has not: where that is not exact enough, another may be."""
    found: dict[str, Candidate] = {}
    for one in candidates:
        found.setdefault(one.arithmetic, one)
    return list(found.values())[1:]


def _few_channels(exported: ExportedProgram) -> bool:
    """Whether there are convolutions of few channels, beside others."""
    taken: list[int] = []
    for node in exported.graph.nodes:
        if node.op == "call_function" and str(node.target).rpartition(".")[0] in LEFT["convolutions"]:
            weight: Any = node.args[1]
            # of a size that varies, asking for the number would fix it for all that comes
            first, second = weight.meta["val"].shape[:2]  # of which the first one is of all groups
            groups: Any = node.args[6] if len(node.args) > 6 else 1
            known = [first // groups] if isinstance(first, int) else []
            known += [second] if isinstance(second, int) else []
            taken += [min(known)] if known else []
    return min(taken, default=LEAST_CHANNELS) < LEAST_CHANNELS <= max(taken, default=0)


def _operators(exported: ExportedProgram) -> set[str]:
    """The operators of a graph, without their overloads."""
    return set(_calls(exported))


def _calls(exported: ExportedProgram) -> list[str]:
    """The operator of each call of a graph, without its overload."""
    called = (str(node.target) for node in exported.graph.nodes if node.op == "call_function")
    return [target.rpartition(".")[0] for target in called]


def _scheduled(
    module: torch.nn.Module,
    exported: ExportedProgram,
    first: Lowered,
    class_name: str,
    import_from: str,
    import_file: str,
    check_indices: bool,
    most: int | None,
    on: Target,
    measured: bool,
) -> tuple[list[Candidate], Chosen]:
    """Candidates for what ``exported`` was lowered to, and the default schedules.

    ``most``: no further schedule is written after so many candidates. ``measured``: they are for a GPU that is there.
    """
    found = planned(first, check_indices=check_indices)
    check_writable(found, class_name)
    graph, kernels, hints = found.graph, found.kernels, found.hints
    note = candidate_notes.written(len(graph.lowered), graph.kept, graph.collapsed)
    offered = choices(kernels, on, hints)
    result: list[Candidate] = []
    # One choice for all kernels of a deep network changes little, and each costs seconds to write and to compile.
    for label, chosen in offered if len(kernels) <= _MANY else offered[:1]:
        if most is not None and len(result) >= most:
            break
        made = written(module, exported, found, class_name=class_name, chosen=chosen, check_indices=check_indices)
        words = "; ".join([*graph.ways, *found.rounded, *filter(None, [label])])
        labels = [words]
        host, packed = made.host.plan, made.host.packed_places
        if not result and replayable(host, graph):
            taken = estimate(host, graph, chosen, on, hints, packed)
            if taken.worthwhile:
                labels.append(", ".join(filter(None, [words, _REPLAYED])))
            # The first is validated, and is the kernel where there is no time for others.
            if taken.much_faster and measured:
                labels.reverse()
        for variant in labels:
            text = compose(
                module,
                found,
                made,
                class_name=class_name,
                import_from=import_from,
                import_file=import_file,
                replayed=variant != words,
            )
            if any(text == known.source for known in result):
                continue
            candidate = Candidate(text, GENERATOR, note=note, variant=variant, kept=counted(graph.kept))
            products = [schedule for schedule in chosen.values() if isinstance(schedule, Product | Chained)]
            candidate.precision = graph.precision
            candidate.arithmetic = ", ".join(found.rounded) or (products[0].arithmetic if products else "")
            candidate.faults = [error.to_json() for error in failures(graph, class_name)]
            result.append(candidate)
    return result, offered[0][1]
