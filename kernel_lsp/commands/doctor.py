"""``kernel-lsp doctor``: is everything here that a generation needs, and how to get what is not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from kernel_lsp import errors
from kernel_lsp.commands.run_jobs import NOT_VALIDATED, WANTED, print_json, settings_from
from kernel_lsp.commands.wrapping import filled, width_of
from kernel_lsp.errors.surface import adapted
from kernel_lsp.jobs import Jobs
from kernel_lsp.jobs.formatting import ruff_command
from kernel_lsp.settings import Settings

LEAST_DISK = 2 << 30  # bytes; Triton's and Inductor's caches of a working day
_PROBE_SECONDS = 60.0

#: Runs in the worker's interpreter, read from standard input (a prefix such as ssh would mangle an argument).
_PROBE = """
import json, os, shutil, sysconfig
def folder(name):
    import importlib.util
    spec = importlib.util.find_spec(name)
    return next(iter(spec.submodule_search_locations)) if spec and spec.submodule_search_locations else None
triton = folder("triton")
tools = os.path.join(triton, "backends", "nvidia", "bin") if triton else ""
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
cache = os.environ.get("TRITON_CACHE_DIR") or os.path.expanduser("~/.triton")
existing = cache
while not os.path.isdir(existing):
    existing = os.path.dirname(existing)
print(json.dumps({
    "compiler": os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or shutil.which("cc"),
    "header": header if os.path.exists(header) else None,
    "header_wanted": header,
    "ptxas": next((p for p in [os.environ.get("TRITON_PTXAS_PATH"), os.path.join(tools, "ptxas"), shutil.which("ptxas")]
                   if p and os.access(p, os.X_OK)), None),
    "cache": cache,
    "cache_writable": os.access(existing, os.W_OK),
    "disk": shutil.disk_usage(existing).free,
}))
"""


@dataclass
class Finding:
    """One thing looked at. A ``warning`` costs something but stops nothing; ``fix`` is empty when all is well."""

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    fix: str = ""


class _Silent:
    def progress(self, job: Any, stage: str, message: str, percentage: int) -> None:
        pass

    def verdict(self, job: Any) -> None:
        pass

    def finished(self, job: Any) -> None:
        pass


def run(options: Any) -> int:
    """Print the findings; 0 if nothing is missing, else 2."""
    settings_for = settings_from(options, tolerant=True)
    here = Path.cwd() / "pyproject.toml"
    try:
        settings = settings_for(here)
        hello: dict[str, Any] | errors.UserError = asyncio.run(_hello(settings))
    except errors.UserError as error:
        settings, hello = Settings(), error
    findings = [_ruff(), *_worker(settings, hello)]
    ok = all(finding.state != "missing" for finding in findings)
    if options.json:
        print_json({"ok": ok, "checks": [asdict(finding) | {"fix": adapted(finding.fix)} for finding in findings]})
    else:
        _print(findings)
    return WANTED if ok else NOT_VALIDATED


async def _hello(settings: Settings) -> dict[str, Any]:
    jobs = Jobs(lambda path: settings, _Silent())
    try:
        return await jobs.hello(Path.cwd())
    finally:
        await jobs.close()


def _worker(settings: Settings, hello: dict[str, Any] | errors.UserError) -> list[Finding]:
    command = settings.interpreter_command()
    if isinstance(hello, errors.UserError):
        return [Finding("interpreter", "missing", " ".join(command), str(hello))]
    findings = [Finding("interpreter", "ok", f"{hello['interpreter']} (Python {hello['python']})")]
    problems = [errors.from_json(problem) for problem in hello["problems"]]
    for package in ("torch", "triton", "numpy"):
        told = [str(problem) for problem in problems if f" {package} " in f" {problem} ".replace(".", " ")]
        version = hello.get(package) or "not installed"
        findings.append(Finding(package, "missing" if told else "ok", version, " ".join(told)))
    rest = [str(p) for p in problems if not any(str(p) in finding.fix for finding in findings)]
    findings += [Finding("interpreter", "missing", "not fit", problem) for problem in rest]
    gpus = [device for device in hello["devices"] if device["kind"] == "cuda"]
    findings.append(_gpu(gpus))
    findings += [_confinement(layer) for layer in hello.get("confinement", [])]
    try:
        found = _probe(command)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return [
            *findings,
            Finding("tools", "missing", f"the probe failed: {error}", "See whether the interpreter runs."),
        ]
    return [*findings, *_tools(found, bool(gpus))]


def _ruff() -> Finding:
    try:
        return Finding("ruff", "ok", ruff_command()[0])
    except errors.FormatterFailed as error:
        return Finding("ruff", "missing", "not found", str(error))


def _gpu(gpus: list[dict[str, Any]]) -> Finding:
    if gpus:
        return Finding("GPU", "ok", ", ".join(f"{gpu['name']} (capability {gpu['capability']})" for gpu in gpus))
    fix = (
        "Kernels are checked under Triton's interpreter and compiled, but not timed. For times: a CUDA build of torch on a "
        "machine with an NVIDIA GPU, or a worker prefix that leads to one (kernelLsp.workerPrefix)."
    )
    return Finding("GPU", "warning", "no CUDA GPU", fix)


def _confinement(layer: dict[str, str]) -> Finding:
    """A layer that keeps a kernel under validation from the user's files and programs."""
    return Finding(layer["name"], "warning" if layer["fix"] else "ok", layer["found"], layer["fix"])


def _tools(found: dict[str, Any], gpu: bool) -> list[Finding]:
    """Compiler and header (Triton builds its launcher with them, on a GPU), ptxas, disk."""
    needed: Literal["missing", "warning"] = "missing" if gpu else "warning"
    only = "" if gpu else " (needed on a GPU only)"
    findings = [
        Finding("C compiler", "ok", found["compiler"])
        if found["compiler"]
        else Finding("C compiler", needed, f"none{only}", "Install one: apt-get install gcc libc6-dev, or set CC."),
        Finding("Python.h", "ok", found["header"])
        if found["header"]
        else Finding("Python.h", needed, f"{found['header_wanted']} is not there{only}", "apt-get install python3-dev"),
        Finding("ptxas", "ok", found["ptxas"])
        if found["ptxas"]
        else Finding("ptxas", "missing", "not found", "Triton brings its own: pip install --force-reinstall triton"),
    ]
    disk = f"{found['disk'] / (1 << 30):.1f} GiB free for {found['cache']}"
    if not found["cache_writable"]:
        fix = "Make it writable, or set TRITON_CACHE_DIR to a folder that is."
        findings.append(Finding("disk", "missing", f"{found['cache']} cannot be written", fix))
    elif found["disk"] < LEAST_DISK:
        findings.append(Finding("disk", "warning", disk, "Free some space, or set TRITON_CACHE_DIR to another disk."))
    else:
        findings.append(Finding("disk", "ok", disk))
    return findings


def _probe(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [*command, "-"], input=_PROBE, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
    )
    data: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return data


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console, width = Console(highlight=False), width_of(sys.stdout)
    marks = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "missing": "[red]✗[/]"}
    for finding in findings:
        found = filled(f"* {finding.name}: {finding.found}", width, "  ").removeprefix(f"* {finding.name}:")
        console.print(f"{marks[finding.state]} [bold]{finding.name}[/]:{escape(found)}", soft_wrap=True)
        if finding.fix:
            fix = filled(adapted(finding.fix), width and width - 2)
            console.print(textwrap.indent(escape(fix), "  "), soft_wrap=True)
