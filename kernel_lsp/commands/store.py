"""``kernel-lsp store info | prune | export | import``; see docs/store.md."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from kernel_lsp.commands import kernelbook
from kernel_lsp.commands.run_jobs import WANTED, WRONG, print_json, refuse
from kernel_lsp.commands.wrapping import say
from kernel_lsp.errors import NothingToPrune, StoreOff, UserError
from kernel_lsp.settings import load
from kernel_lsp.store import exporting, importing, pruning
from kernel_lsp.store.database import path_for
from kernel_lsp.store.info import Info, info

_SHOWN = 20  # damaged lines that are named one by one


def run(options: Any) -> int:
    """Exit status: 0 done, 1 lines of an import were damaged, 2 it could not be done."""
    actions = {"info": _info, "prune": _prune, "export": _export, "import": _import}
    if options.action == "prune" and options.older_than is None and options.keep is None:
        return refuse(NothingToPrune(), options.json)
    try:
        store = store_in_use(Path.cwd())
        if store is None:
            raise StoreOff()
        return actions[options.action](store, options)
    except UserError as error:
        return refuse(error, options.json)


def store_in_use(folder: Path) -> Path | None:
    """The store that the settings for a folder mean; what is wrong with them goes to standard error."""
    settings, problems = load(folder / "any.py")
    for problem in problems:
        say(problem)
    return path_for(settings.store, settings.root)


def _info(store: Path, options: Any) -> int:
    found = info(store)
    if options.json:
        print_json(dataclasses.asdict(found))
        return WANTED
    for name, value in _lines(found):
        print(f"{name:<20} {value}")
    return WANTED


def _lines(found: Info) -> list[tuple[str, str]]:
    if not found.version:
        return [("file", found.path), ("", "not there yet: nothing was validated")]
    lines = [("file", found.path), ("size", f"{found.bytes / 2**20:.1f} MiB"), ("version", str(found.version))]
    lines += [(name, f"{count:,}") for name, count in found.rows.items()]
    lines.append(("imported verdicts", f"{found.imported:,}"))
    if found.oldest:
        lines.append(("from, to", f"{found.oldest}, {found.newest}"))
    return lines


def _prune(store: Path, options: Any) -> int:
    pruned = pruning.prune(store, options.older_than, options.keep)
    if options.json:
        print_json(dataclasses.asdict(pruned))
    else:
        print(f"Removed {pruned.verdicts} verdicts, {pruned.kernels} kernels and {pruned.baselines} kept times.")
    return WANTED


def _export(store: Path, options: Any) -> int:
    if options.format == "kernelbook":
        count = exporting.write(options.file, kernelbook.lines(store))
        if options.json:
            print_json({"file": str(options.file), "pairs": count})
        else:
            print(f"{options.file}: {count} pairs of a module and its kernel.")
        return WANTED
    verdicts, kernels = exporting.export(store, options.file)
    if options.json:
        print_json({"file": str(options.file), "verdicts": verdicts, "kernels": kernels})
    else:
        print(f"{options.file}: {verdicts} verdicts and {kernels} kernels.")
    return WANTED


def _import(store: Path, options: Any) -> int:
    done = importing.take(store, options.file)
    if options.json:
        damaged = [error.to_json() for error in done.damaged]
        print_json({"verdicts": done.verdicts, "kernels": done.kernels, "known": done.known, "damaged": damaged})
    else:
        print(f"{done.verdicts} verdicts and {done.kernels} kernels are new; {done.known} were known.")
    for error in done.damaged[:_SHOWN]:
        say(error)
    if len(done.damaged) > _SHOWN:
        say(f"{len(done.damaged) - _SHOWN} more lines were not imported.")
    return WRONG if done.damaged else WANTED
