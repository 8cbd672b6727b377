"""What the synthesizer makes of blocks of timm's models and layers of transformers' models, each with its model's own inputs.

    pip install timm transformers     # into the Python that has torch and triton; kernel-lsp does not need them
    python benchmarks/blocks.py [NAME…] [--out FILE] [--seconds 300] [--json FILE] [--synthesis]

Writes a Markdown table: what stays with torch, how long capture and synthesis took, the kernels of the default candidate, and how far the
results are from float64, beside eager's. Without a CUDA GPU the blocks are small and run under Triton's interpreter; with one they have
usual sizes, and eager, torch.compile and the candidates are timed in turn. Each block has a process of its own, and ends after
``--seconds``. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
import torch  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

if not (GPU := torch.cuda.device_count() > 0):  # which does not start CUDA: processes are forked
    os.environ["TRITON_INTERPRET"] = "1"

from support.blocks import BLOCKS, Block, built  # noqa: E402
from support.kernels import written  # noqa: E402
from support.turns import in_turn  # noqa: E402

from kernel_lsp.errors import UserError  # noqa: E402
from kernel_lsp.schema import Candidate  # noqa: E402
from kernel_lsp.synthesis import synthesize  # noqa: E402

_SCHEDULES_FOR = "NVIDIA H100 80GB HBM3"  # where there is no GPU
_ROUNDS, _FLUSHED, _TIMED = 7, 256 * 2**20, 4
#: float32 kernels may be so many times further from float64 than eager, or so far whatever eager is
_TIMES, _FAR = 8.0, 2e-6


def of(block: Block, folder: Path, runs: bool) -> dict[str, Any]:
    """A row of the table, as far as it goes. ``runs``: whether kernels run, too."""
    from kernel_lsp.specimen import exporting
    from kernel_lsp.specimen.examples import Example

    module, args, kwargs = built(block, small=not GPU)
    kind = type(module)
    row: dict[str, Any] = {"module": f"{block.name} {kind.__name__}"}
    begun = time.monotonic()
    exported = exporting.export(module, Example(args=args, kwargs=kwargs), "", kind.__name__, ran=True, training=False)
    row["capture"] = time.monotonic() - begun
    if isinstance(exported, UserError):
        return row | {"refused": str(exported)}
    begun = time.monotonic()
    name = torch.cuda.get_device_name() if GPU else _SCHEDULES_FOR
    try:
        found = synthesize(module, exported, class_name=kind.__name__, import_from=kind.__module__, gpu=name)
    except UserError as error:
        return row | {"refused": str(error), "synthesis": time.monotonic() - begun}
    row |= {
        "synthesis": time.monotonic() - begun,
        "candidates": len(found),
    }
    least = min(found, key=lambda one: sum(one.kept.values()))
    row |= {
        "note": least.note,
        "kept": least.kept,
        "faults": [str(one) for one in least.faults],
        "variant": least.variant,
    }
    row["kernels"] = len(re.findall(r"@triton\.jit\ndef [^_]", least.source))
    if not runs:
        return row
    chosen = {id(one): one for one in (found[0], least)}.values()
    return row | (_timed if GPU else _compared)(
        list(found[:_TIMED]) if GPU else list(chosen), module, args, kwargs, folder
    )


def _floats(result: Any) -> list[torch.Tensor]:
    return [t.double() for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.is_floating_point()]


def _wide(leaf: Any) -> Any:
    return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


def _error(result: Any, exact: Any) -> float:
    """The largest difference, over the largest magnitude."""
    errors = [0.0]
    for got, wanted in zip(_floats(result), _floats(exact), strict=True):
        if got.shape != wanted.shape or not torch.equal(got.isfinite(), wanted.isfinite()):
            return float("inf")
        difference = torch.where(wanted.isfinite(), (got - wanted).abs(), 0.0).max() if got.numel() else 0.0
        errors.append(float(difference) / max(1e-3, float(wanted.nan_to_num(0, 0, 0).abs().max())))
    return max(errors)


def _called(module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
    """The module's results. A forward may put them into the lists that it is given."""
    args, kwargs = pytree.tree_map(lambda leaf: leaf, (args, kwargs))
    return module(*args, **kwargs)


def _exact(module: torch.nn.Module, args: Any, kwargs: Any, eager: Any) -> Any:
    """What the module computes in float64, or what eager did where one of its operators has no float64 (``_grouped_mm``)."""
    args, kwargs = pytree.tree_map(_wide, (args, kwargs))
    try:
        return copy.deepcopy(module).double()(*args, **kwargs)
    except RuntimeError:
        return eager


def _compared(found: list[Candidate], module: torch.nn.Module, args: Any, kwargs: Any, folder: Path) -> dict[str, Any]:
    from kernel_lsp.validation.interpreter import repair

    repair()
    begun = time.monotonic()
    eager = _called(module, args, kwargs)
    exact = _exact(module, args, kwargs, eager)
    row: dict[str, Any] = {"eager_error": _error(eager, exact), "error": 0.0, "inside": True}
    for one in found:
        kernel = written(one.source, folder, module)
        row["inside"] = row["inside"] and kernel._in_envelope(*args, **kwargs)
        row["error"] = max(row["error"], _error(_called(kernel, args, kwargs), exact))
    return row | {"seconds": time.monotonic() - begun}


def _timed(found: list[Candidate], module: torch.nn.Module, args: Any, kwargs: Any, folder: Path) -> dict[str, Any]:
    """Medians in microseconds, with the errors of what is timed."""
    module = module.to("cuda")
    args, kwargs = pytree.tree_map(lambda x: x.to("cuda") if isinstance(x, torch.Tensor) else x, (args, kwargs))
    compiled = torch.compile(module)
    calls = {
        "eager": lambda: _called(module, args, kwargs),
        "torch.compile": lambda: _called(compiled, args, kwargs),
    }
    eager = calls["eager"]()
    exact = _exact(module, args, kwargs, eager)
    row: dict[str, Any] = {"eager_error": _error(eager, exact), "error": 0.0, "inside": True}
    calls["torch.compile"]()
    for place, one in enumerate(found):
        kernel = written(one.source, folder, module)
        row["inside"] = row["inside"] and kernel._in_envelope(*args, **kwargs)
        row["error"] = max(row["error"], _error(_called(kernel, args, kwargs), exact))
        calls[f"{place} {one.variant}"] = lambda kernel=kernel: _called(kernel, args, kwargs)
    times = in_turn(calls, _ROUNDS, _FLUSHED)
    return row | {"microseconds": {name: statistics.median(several) for name, several in times.items()}}


def _child(block: Block, runs: bool, answers: Any) -> None:
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # of sizes that are fixed, which is not of interest here
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        try:
            answers.send(of(block, Path(folder), runs))
        except Exception as problem:
            answers.send({"problem": f"{type(problem).__name__}: {problem}", "trace": traceback.format_exc()})


def apart(block: Block, seconds: float, runs: bool) -> dict[str, Any]:
    """The row of a block, computed in a process of its own."""
    forking = multiprocessing.get_context("fork")
    here, there = forking.Pipe(duplex=False)
    process = forking.Process(target=_child, args=(block, runs, there))
    process.start()
    there.close()
    try:
        row = here.recv() if here.poll(seconds) else {"problem": f"no end after {seconds:.0f} s"}
    except EOFError:
        row = {"problem": "its process died"}
    process.kill()
    process.join()
    return {"name": block.name, "module": block.name, "package": block.package} | row


def verdict(row: dict[str, Any]) -> str:
    if "problem" in row or "refused" in row:
        return "no"
    if "error" not in row:
        return ""
    if not row["inside"]:
        return "outside its envelope"
    return "yes" if row["error"] <= max(_TIMES * row["eager_error"], _FAR) else "WRONG"


def line(row: dict[str, Any]) -> str:
    kept = ", ".join(
        f"{name.removeprefix('aten.')} ({n})" if n > 1 else name.removeprefix("aten.")
        for name, n in row.get("kept", {}).items()
    )
    said = (row.get("problem") or row.get("refused") or kept or "nothing").replace("|", "\\|").replace("\n", " ")
    cells = [row["module"], row.get("note", "").partition(" ops")[0], str(row.get("kernels", "")), said]
    cells += [f"{row[key]:.1f}" if key in row else "" for key in ("capture", "synthesis")]
    cells += [f"{row[key]:.1e}" if key in row else "" for key in ("error", "eager_error")] + [verdict(row)]
    if times := row.get("microseconds"):
        best = min(time for name, time in times.items() if name not in ("eager", "torch.compile"))
        cells += [f"{times['eager']:.0f}", f"{times['torch.compile']:.0f}", f"{best:.0f}"]
    return f"| {' | '.join(cells)} |"


def table(rows: list[dict[str, Any]]) -> str:
    columns = ["module", "operators in Triton", "kernels", "stays with torch, or why there is no kernel"]
    columns += ["s of capture", "s of synthesis", "error", "eager's", "right"]
    columns += ["eager µs", "torch.compile µs", "best µs"] if GPU else []
    return "\n".join([f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns), *map(line, rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="as in the table, without the class")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the table")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="append the rows, a line each, as they come; those in it are not run again",
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="for a block")
    parser.add_argument("--synthesis", action="store_true", help="write the kernels without running them")
    options = parser.parse_args()
    import timm
    import transformers.modeling_utils

    known: dict[str, dict[str, Any]] = {}
    if options.json is not None and options.json.exists():
        known = {row["name"]: row for row in map(json.loads, options.json.read_text().splitlines())}
    rows = []
    for block in BLOCKS:
        if options.names and block.name not in options.names:
            continue
        if block.name in known:
            rows.append(known[block.name])
            continue
        rows.append(row := apart(block, options.seconds, not options.synthesis))
        print(line(row), flush=True)
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    where = torch.cuda.get_device_name() if GPU else "Triton's interpreter"
    versions = f"{where}, torch {torch.__version__}, timm {timm.__version__}, transformers {transformers.__version__}"
    if options.out is not None:
        options.out.write_text(f"# Blocks of timm and transformers\n\n{versions}.\n\n{table(rows)}\n")


if __name__ == "__main__":
    main()
