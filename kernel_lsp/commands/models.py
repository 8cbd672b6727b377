"""``kernel-lsp models list | pull NAME | remove NAME | try NAME FILE::CLASS``; the last is in a file of its own.

Exit status (of ``try``: as of ``generate``): 0 done, 1 declined by the user, 2 an error, 130 interrupted.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernel_lsp.commands import try_model
from kernel_lsp.commands.download_progress import Bar, JsonLines
from kernel_lsp.commands.run_jobs import INTERRUPTED, NOT_VALIDATED, WANTED, WRONG, print_json
from kernel_lsp.commands.wrapping import say, width_of
from kernel_lsp.errors import HubOffline, LicenceNotAccepted, UserError
from kernel_lsp.hub import cache, choosing, pulling, removing
from kernel_lsp.hub.catalogue import CATALOGUE, GENERATORS, Known, needed_bytes, wanted
from kernel_lsp.hub.choosing import gigabytes
from kernel_lsp.hub.memory import Memory, fits, memory_here

DECLINED = WRONG


def run(options: Any) -> int:
    """One of the subcommands."""
    actions = {"list": _list, "pull": _pull, "remove": _remove, "try": try_model.run}
    lines = getattr(options, "json_progress", False)
    try:
        return actions[options.action](options)
    except UserError as error:
        if lines:
            JsonLines().line({"error": error.to_json()})
        elif options.json:
            print_json({"error": error.to_json()})
        if not options.json:
            say(error)
        return NOT_VALIDATED
    except KeyboardInterrupt:
        said = "What was fetched is kept: the same command goes on from there." if options.action == "pull" else ""
        print(f"\nkernel-lsp: interrupted. {said}".rstrip(), file=sys.stderr)
        if options.json:
            print_json({"error": {"code": "Cancelled", "message": f"Interrupted. {said}".rstrip(), "where": None}})
        return INTERRUPTED


# list


def _list(options: Any) -> int:
    memory = memory_here()
    rows = _rows(memory)
    reason = "--offline" if options.offline else cache.offline()
    if options.json:
        document = {
            "cache": str(cache.cache_folder()),
            "offline": bool(reason),
            "memory": asdict(memory),
            "models": rows,
        }
        print_json(document)
    else:
        _print_table(rows, memory, reason)
    return WANTED


def _rows(memory: Memory) -> list[dict[str, Any]]:
    """The catalogue, each with what is here of it; then everything else in the cache that a generator could run."""
    found = cache.found()
    rows = []
    for known in CATALOGUE:
        here = [model for model in found if model.repository in known.repositories]
        found = [model for model in found if model not in here]
        offers = {q.name: q.bytes for q in known.quantisations} or {"": known.bytes}
        for quantisation, size in offers.items():
            mine = [m for m in here if m.quantisation.lower() == quantisation.lower()]
            here = [m for m in here if m not in mine]
            rows += [_row(known, quantisation, size, model, memory) for model in mine]
            if not mine:
                rows.append(_row(known, quantisation, size, None, memory))
        rows += [_row(known, model.quantisation, None, model, memory) for model in here]
    return rows + [_row(None, model.quantisation, None, model, memory) for model in found]


def _row(
    known: Known | None, quantisation: str, size: int | None, model: cache.Found | None, memory: Memory
) -> dict[str, Any]:
    """``size``: what the catalogue says. What is here and complete is measured; what is neither is not known: null."""
    short = known is not None and (model is None or model.repository == known.repositories[0])
    repository = model.repository if model else known.repositories[0] if known else ""
    name = known.name if known and short else repository
    state = "absent" if model is None else "incomplete" if model.missing else "complete"
    if model is not None and state == "complete":
        size = model.bytes
    needed = None if size is None else needed_bytes(size)
    kind = model.kind if model else known.kind if known else "gguf"
    return {
        "name": f"{name}:{quantisation}" if quantisation else name,
        "repository": repository,
        "about": known.about if known else "",
        "kind": kind,
        "quantisation": quantisation,
        "state": state,
        "missing": model.missing if model else "",
        "path": str(model.path) if model else None,
        "bytes": size,
        "on_disk": model.bytes if model else 0,
        "needed": needed,
        "fits": None if needed is None else fits(needed, memory),
        "generator": GENERATORS[kind],
        "licence_page": known.licence_page if known else f"https://huggingface.co/{repository}",
    }


def _print_table(rows: list[dict[str, Any]], memory: Memory, offline: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("model", "size", "memory", "fits into", "generator", "here"):
        table.add_column(title, justify="right" if title in ("size", "memory") else "left", overflow="fold")
    places = {"gpu": "GPU", "ram": "RAM", "no": "[red]neither[/]", None: "?"}
    marks = {"absent": "[dim]no[/]", "complete": "[green]yes[/]"}
    for row in rows:
        part = f"[yellow]{gigabytes(row['on_disk'])} of it[/]; missing: {escape(row['missing'])}"
        size, needed = ["?" if row[key] is None else gigabytes(row[key]) for key in ("bytes", "needed")]
        here = marks.get(row["state"], part)
        table.add_row(escape(row["name"]), size, needed, places[row["fits"]], row["generator"], here)
    console = Console(highlight=False, width=width_of(sys.stdout) or 200)
    console.print(table)
    gpu = memory.largest_gpu
    graphics = f"{gigabytes(gpu.total)} on {gpu.name}" if gpu else "no NVIDIA GPU"
    lines = [f"{row['name']} is {row['path']}" for row in rows if row["state"] == "complete"]
    lines.append(f"This machine: {gigabytes(memory.ram)} of RAM, {graphics}. Cache: {cache.cache_folder()}")
    if offline:
        lines.append(f"Offline ({offline}): nothing can be fetched.")
    console.print()
    for line in lines:
        console.print(escape(line), soft_wrap=True)


# pull


def _pull(options: Any) -> int:
    want = wanted(options.name)
    interactive = _interactive(options)
    reason = "--offline" if options.offline else cache.offline()
    try:
        offer = pulling.look_up(want, offline=reason)
    except HubOffline:
        path = cache.find(options.name)
        if path is None:
            raise
        _say(options, f"{options.name} is here ({path}). Offline ({reason}): not asked whether there is a newer one.")
        return _pulled(options, path, None, None)
    quantisation = _quantisation(options, offer, interactive)
    if quantisation is None:
        return _declined(options)
    plan = pulling.plan(offer, quantisation)
    missing = plan.missing
    if missing:
        choosing.check_disk(plan.name, missing, cache.cache_folder())
        if not cache.begun(plan.repository) and not _licence(options, offer, interactive):
            return _declined(options)
        _say(
            options,
            f"Fetching {plan.name}: {gigabytes(missing)} of {gigabytes(plan.bytes)} into {cache.cache_folder()}",
        )
    with JsonLines() if options.json_progress else Bar(plan.name) as progress:
        path = pulling.pull(plan, progress.show)
    _say(options, f"{plan.name} is here: {path}" if missing else f"{plan.name} was here already: {path}")
    return _pulled(options, path, offer, plan, missing)


def _quantisation(options: Any, offer: pulling.Offer, interactive: bool) -> str | None:
    """The one that was asked for, or the one that suits the memory; None if the user wants none. Says why."""
    sizes, memory = offer.sizes(), memory_here()
    if offer.kind == "safetensors" or offer.wanted.part:
        (label,) = sizes
        needed = needed_bytes(sizes[label])
        if fits(needed, memory) == "no" and not options.force:
            others = {q.name: q.bytes for k in CATALOGUE if k is offer.wanted.known for q in k.quantisations}
            raise choosing.too_little_memory(options.name, needed, memory, others)
        return label
    if options.force:
        memory = Memory(sys.maxsize, memory.gpus)  # as if everything fitted into RAM
    choice = choosing.propose(sizes, memory, options.name)
    proposal = f"{choice.quantisation} ({gigabytes(sizes[choice.quantisation])}): {choice.why}."
    if not interactive or options.yes:
        _say(options, f"Taking {proposal} Another: {options.name}:QUANTISATION, of {', '.join(sizes)}.")
        return choice.quantisation
    print(f"{offer.repository} has {', '.join(f'{q} ({gigabytes(s)})' for q, s in sizes.items())}.", file=sys.stderr)
    print(f"Proposed: {proposal}", file=sys.stderr)
    while True:
        answer = _ask(f"Which one? [{choice.quantisation}, or n for none] ")
        if answer.lower() in ("n", "no", "none"):
            return None
        named = [q for q in sizes if q.lower() == (answer or choice.quantisation).lower()]
        if named:
            return named[0]


def _licence(options: Any, offer: pulling.Offer, interactive: bool) -> bool:
    """Show the licence; whether it is accepted.

    Raises:
        LicenceNotAccepted: the standard input is no terminal, so the user cannot be asked.
    """
    licence = offer.licence
    _say(options, f"Licence of {offer.repository}: {licence.name}, {licence.link}")
    if options.accept_licence or options.yes:
        return True
    if not interactive:
        raise LicenceNotAccepted(name=offer.repository, licence=licence.name, link=licence.link)
    return _ask("Do you accept it? [y/N] ").lower() in ("y", "yes")


def _pulled(options: Any, path: Path, offer: pulling.Offer | None, plan: pulling.Plan | None, fetched: int = 0) -> int:
    document = {
        "name": options.name,
        "repository": plan.repository if plan else None,
        "kind": plan.kind if plan else None,
        "quantisation": plan.quantisation if plan else None,
        "commit": plan.commit if plan else None,
        "path": str(path),
        "bytes": plan.bytes if plan else None,
        "fetched": fetched,
        "licence": asdict(offer.licence) if offer else None,
        "error": None,
    }
    if options.json_progress:
        JsonLines().line({"fraction": 1.0, "message": f"{options.name} is here", "path": str(path)})
    elif options.json:
        print_json(document)
    return WANTED


# remove


def _remove(options: Any) -> int:
    removal = removing.removal(wanted(options.name))
    freed = gigabytes(removal.bytes)
    if not options.yes:
        if not _interactive(options):
            say(f"{removal.what} ({freed}) was left: say --yes to remove it.")
            return NOT_VALIDATED
        if _ask(f"Remove {removal.what} from the cache, which frees {freed}? [y/N] ").lower() not in ("y", "yes"):
            return _declined(options)
    removal.execute()
    if options.json:
        print_json({"name": options.name, "removed": removal.what, "freed": removal.bytes, "error": None})
    else:
        print(f"Removed {removal.what}: {freed} freed.")
    return WANTED


# asking and telling


def _interactive(options: Any) -> bool:
    quiet = options.json or getattr(options, "json_progress", False)
    return not quiet and sys.stdin.isatty() and sys.stderr.isatty()


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt  # the terminal is gone
    return line.strip()


def _say(options: Any, text: str) -> None:
    """For people: on standard error, which leaves standard output to --json."""
    if not getattr(options, "json_progress", False):
        print(text, file=sys.stderr, flush=True)


def _declined(options: Any) -> int:
    _say(options, "Nothing was changed.")
    return DECLINED
