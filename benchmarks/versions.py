"""The samples' kernels of two versions of the synthesizer, timed in one process on this GPU.

    python benchmarks/versions.py write FOLDER [--gpu NAME]    with either version, with or without a GPU
    python benchmarks/versions.py time OLD NEW [--json FILE]   the folders that were written

``write`` puts every candidate of every sample in FOLDER. ``time`` compiles them, takes the fastest of each version, and lets eager
and those two take turns between CUDA events, L2 overwritten before each call; prints a Markdown table of microseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from support.kernels import loaded
from support.turns import in_turn
from torch import nn

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
#: Rounds in which a version's candidates are compared, and in which the two versions are.
_TRIED, _TIMED = 15, 101
_FLUSHED = 512 << 20  # bytes: more than the L2 cache, and a time in which the host gets ahead
_NAMES = [path.stem for path in sorted(SAMPLES.glob("*.py"))]


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _specimen(name: str) -> tuple[nn.Module, list[Any]]:
    """The sample's module and its example inputs, on the CPU."""
    torch.manual_seed(0)
    file = _load(SAMPLES / f"{name}.py", name)
    kind = next(v for v in vars(file).values() if inspect.isclass(v) and v.__module__ == name)
    needed = file.get_init_inputs() if hasattr(file, "get_init_inputs") else []
    return kind(*needed).eval(), file.get_inputs()


def write(folder: Path, gpu: str) -> None:
    """The candidates that the synthesizer on the path writes."""
    from kernel_lsp.synthesis import synthesize
    from kernel_lsp.synthesis.capture import capture

    chosen = {"gpu": gpu} if "gpu" in inspect.signature(synthesize).parameters else {}
    for name in _NAMES:
        module, inputs = _specimen(name)
        kind = type(module).__name__
        (folder / name).mkdir(parents=True, exist_ok=True)
        try:
            exported = capture(module, tuple(inputs))
            made = synthesize(module, exported, class_name=kind, import_from=name, **chosen)
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for number, candidate in enumerate(made):
            (folder / name / f"{number}.py").write_text(f"# {candidate.variant or 'default'}\n{candidate.source}")


def _candidates(folder: Path, name: str, module: nn.Module) -> dict[str, nn.Module]:
    """The kernels of a sample by what tells them apart; those replayed as a graph are left out."""
    found: dict[str, nn.Module] = {}
    for path in sorted((folder / name).glob("*.py"), key=lambda path: int(path.stem)):
        variant = path.read_text().partition("\n")[0].removeprefix("# ")
        if "replayed" in variant:
            continue
        found[variant] = loaded(path, module)
    return found


def _on_gpu(name: str) -> tuple[nn.Module, list[Any]]:
    module, inputs = _specimen(name)
    return module.to("cuda"), [x.to("cuda") if isinstance(x, torch.Tensor) else x for x in inputs]


def _compile(folder: Path, name: str) -> None:
    """Fill Triton's cache; what cannot be compiled says so when it is timed."""
    module, inputs = _on_gpu(name)
    with torch.no_grad():
        for kernel in _candidates(folder, name, module).values():
            with contextlib.suppress(Exception):
                kernel(*inputs)


def _times(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of each call in each round, sorted."""
    return {name: sorted(times) for name, times in in_turn(calls, rounds, _FLUSHED).items()}


def compare(old: Path, new: Path, name: str) -> dict[str, Any]:
    """Microseconds of eager and of the fastest candidate of each version: median, 20th and 80th percentile."""
    module, inputs = _on_gpu(name)
    calls: dict[str, Callable[[], Any]] = {"eager": lambda: module(*inputs)}
    row: dict[str, Any] = {"sample": name}
    for version, folder in (("old", old), ("new", new)):
        found = _candidates(folder, name, module)
        if not found:
            return {**row, "problem": f"no kernel from the {version} one"}
        for kernel in found.values():
            kernel(*inputs)
        tried = _times({v: lambda kernel=kernel: kernel(*inputs) for v, kernel in found.items()}, _TRIED)
        best = min(tried, key=lambda variant: tried[variant][_TRIED // 2])
        row[f"{version} variant"] = best
        calls[version] = lambda kernel=found[best]: kernel(*inputs)
    for way, found_times in _times(calls, _TIMED).items():
        row[way] = [found_times[int(len(found_times) * share)] for share in (0.5, 0.2, 0.8)]
    return row


def _cell(times: list[float]) -> str:
    median, low, high = times
    return f"{median:.1f} ± {(high - low) / 2:.1f}"


def time(old: Path, new: Path, json_file: Path | None) -> None:
    """Compile in several processes, then time sample by sample."""
    with ProcessPoolExecutor(12, mp_context=get_context("spawn")) as pool:
        list(pool.map(_compile, *zip(*((f, n) for n in _NAMES for f in (old, new)), strict=True)))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| sample | eager | old | new | new over old | variant |\n| --- | --: | --: | --: | --: | --- |")
    for name in _NAMES:
        with torch.no_grad():
            try:
                row = compare(old, new, name)
            except Exception as error:
                row = {"sample": name, "problem": f"{type(error).__name__}: {error}"[:200]}
        if json_file is not None:
            with json_file.open("a") as file:
                file.write(json.dumps(row) + "\n")
        if "problem" in row:
            print(f"| {name} | {row['problem']} | | | | |", flush=True)
            continue
        speedup = row["old"][0] / row["new"][0]
        cells = " | ".join(_cell(row[way]) for way in ("eager", "old", "new"))
        print(f"| {name} | {cells} | {speedup:.2f}× | {row['new variant']} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--gpu", default="NVIDIA H100 80GB HBM3")
    timing = commands.add_parser("time")
    timing.add_argument("old", type=Path)
    timing.add_argument("new", type=Path)
    timing.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder, options.gpu)
    else:
        time(options.old, options.new, options.json)


if __name__ == "__main__":
    main()
