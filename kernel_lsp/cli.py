"""The ``kernel-lsp`` command: its arguments, and which room does the work.

Exit status: 0 success, 1 a kernel is wrong, regressed or was not found, 2 validation could not run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

_EXIT_STATUS = (
    "Exit status: 0 success; 1 a kernel is wrong, regressed or was not found (of check: what --fail-on names); "
    "2 validation could not run."
)


#: what a shell says of a program that SIGPIPE ended, and of one that Ctrl-C did
_READER_GONE, _INTERRUPTED = 141, 130
_WRONG_USAGE = 2  # as argparse ends


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status. Where the reader of its output goes (``| head``), it ends without a word."""
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # at the end of the program what it raises could not be caught
    except BrokenPipeError:
        if not _is_reader_gone():
            raise
    except KeyboardInterrupt:  # Ctrl-C at a moment when no command waits for it
        return _INTERRUPTED
    except SystemExit as ended:  # rich ends the program itself
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
    else:
        return status
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
    return _READER_GONE


def _is_reader_gone() -> bool:
    """Whether it was standard output that broke, and not another pipe."""
    import select

    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _main(arguments: list[str]) -> int:
    if arguments[:1] == ["serve"]:
        # An editor waits for this one: nothing but the server is imported on the way.
        from kernel_lsp.server import main as serve

        return serve(arguments[1:])
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return _WRONG_USAGE
    options = parser.parse_args(arguments)
    if options.command == "completion":
        return _print_completion(options.shell)
    _log(options.verbose)
    import importlib

    from kernel_lsp.errors import surface
    from kernel_lsp.store import sessions

    sessions.name(options.command)
    with surface.command_line(vars(options)):
        status: int = importlib.import_module(f"kernel_lsp.commands.{options.command}").run(options)
    return status


def _print_completion(shell: str) -> int:
    import shtab

    print(shtab.complete(_parser(), shell=shell))
    return 0


def _parser() -> argparse.ArgumentParser:
    import argparse

    from kernel_lsp import __version__, generators
    from kernel_lsp.commands import eval_arguments, explain_arguments
    from kernel_lsp.commands.argument_parser import Parser

    verbose = argparse.ArgumentParser(add_help=False)
    verbose.add_argument("-v", "--verbose", action="store_true", help="log what goes on, and what the worker says")
    interpreter = argparse.ArgumentParser(add_help=False)
    interpreter.add_argument(
        "--interpreter", help="the Python that has torch and triton (default: the one that runs this)"
    )
    output = argparse.ArgumentParser(add_help=False, parents=[verbose])
    output.add_argument("--json", action="store_true", help="print one JSON document on standard output, nothing else")
    shared = argparse.ArgumentParser(add_help=False, parents=[output, interpreter])

    validating = argparse.ArgumentParser(add_help=False)
    validating.add_argument("--device", help="auto, cuda, cuda:N or interpreter (default: auto)")
    validating.add_argument("--seconds", type=float, help="time budget of each job (default: 300)")
    validating.add_argument("--thorough", action="store_true", help="make every check, whatever it takes")
    validating.add_argument(
        "--bounds", choices=["trust", "check"], help="whether kernels check their indices (default: trust)"
    )
    validating.add_argument(
        "--precision",
        choices=["strict", "tf32", "half"],
        help="of float32 products in kernels that are generated; kernel files are validated under their own (default: strict)",
    )
    validating.add_argument(
        "--keep-packed-weights",
        action="store_true",
        default=None,
        help="of kernels that are generated: keep what they compute of weights alone from call to call",
    )
    validating.add_argument("--svg", type=Path, metavar="FILE", help="save the table as a picture, too")

    parser: argparse.ArgumentParser = Parser(
        prog="kernel-lsp", description="From a PyTorch nn.Module to a validated Triton kernel."
    )
    parser.add_argument("--version", action="version", version=f"kernel-lsp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("serve", help="run the language server (kernel-lsp serve --help)", add_help=False)

    generate = commands.add_parser(
        "generate",
        parents=[shared, validating],
        help="generate a validated kernel for each class",
        epilog=_EXIT_STATUS,
    )
    generate.add_argument("targets", nargs="+", metavar="FILE::CLASS", help="a class; a file or folder means all in it")
    generate.add_argument(
        "--generator",
        metavar="NAME[,NAME]",
        help=f"of: {', '.join(generators.names())} (default: every one that can run here)",
    )
    generate.add_argument("--no-write", action="store_true", help="write no file")
    generate.add_argument("--samples", type=int, help="at most this many candidates of each generator (default: 10)")
    generate.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page for a browser, too")
    generate.add_argument(
        "--strict",
        action="store_true",
        help="exit status 2 if a class of a folder, or a part of another class, has no example inputs (default: 0)",
    )
    generate.add_argument("--overwrite", action="store_true", help="replace kernel files that were edited")
    generate.add_argument(
        "--may-fail",
        action="append",
        default=[],
        metavar="FILE::CLASS",
        help="a class that is known not to work: shown with its reason, but not counted in the exit status",
    )

    validate = commands.add_parser(
        "validate", parents=[shared, validating], help="validate kernel files again", epilog=_EXIT_STATUS
    )
    validate.add_argument(
        "targets", nargs="+", metavar="PATH", help="kernel files, source files that have some, or folders"
    )
    validate.add_argument("--write", action="store_true", help="bring the headers of kernel files up to date")

    _check(
        commands.add_parser(
            "check",
            parents=[verbose, interpreter, validating],
            help="validate every kernel file found, in CI too",
            description="Validate every kernel file under the paths. Nothing of the project is written.",
            epilog=_EXIT_STATUS,
        )
    )

    record = commands.add_parser(
        "record", parents=[output], help="run a program and note what its modules are called with (docs/record.md)"
    )
    record.add_argument(
        "--class",
        dest="classes",
        action="append",
        default=[],
        metavar="NAME",
        help="this class only, also one of a library; may be given again (default: all in the project's files)",
    )
    record.add_argument("--output", type=Path, metavar="FILE", help="write the recording to this JSON file, too")
    record.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND…", help="python train.py …")

    watch = commands.add_parser(
        "watch",
        parents=[verbose, interpreter, validating],
        help="validate every kernel again when it or its class changes",
    )
    watch.add_argument("targets", nargs="*", metavar="PATH", help="files or folders (default: this folder)")
    watch.add_argument("--write", action="store_true", help="bring the headers of kernel files up to date")
    watch.add_argument("--poll", action="store_true", help="compare files from time to time: for network folders")

    eval_arguments.add(
        commands.add_parser("eval", help="validate kernels for every problem of a suite, and score them"),
        shared,
        generators.names(),
    )

    explain_arguments.add(
        commands.add_parser(
            "explain",
            parents=[shared],
            help="print what the synthesizer's stages make of a class, for people who extend it",
            description="Print the stages of the rule-based synthesizer for one class; see docs/synthesizer.md.",
            epilog="Exit status: 0 success; 1 no kernel can be written (the stages before that are printed); 2 the class "
            "cannot be looked at.",
        )
    )
    _history(
        commands.add_parser("history", parents=[output], help="show how the verdicts on a class changed over time")
    )
    _store(
        commands.add_parser("store", help="the file that keeps what was validated: info, prune, export, import"), output
    )
    completion = commands.add_parser(
        "completion",
        help="print a script that completes the commands and options in a shell",
        epilog='bash: eval "$(kernel-lsp completion bash)" in ~/.bashrc; zsh: kernel-lsp completion zsh > a file '
        "_kernel-lsp in a folder of $fpath; fish: kernel-lsp completion fish > ~/.config/fish/completions/kernel-lsp.fish.",
    )
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    commands.add_parser("doctor", parents=[shared], help="say whether everything needed is here, and how to get it")
    _models(
        commands.add_parser("models", help="language models: what is here, fetch, remove or try one"),
        output,
        shared,
        validating,
    )
    return parser


def _check(check: argparse.ArgumentParser) -> None:
    """``kernel-lsp check [PATH…]``; see docs/ci.md."""
    from kernel_lsp.commands import argument_types

    check.add_argument("targets", nargs="*", metavar="PATH", help="files or folders (default: this folder)")
    check.add_argument(
        "--changed-since",
        metavar="REF",
        help="only the kernels whose class (with what it uses) or body changed between this commit and the working tree",
    )
    check.add_argument(
        "--fail-on",
        type=argument_types.kinds,
        metavar="KIND[,KIND]",
        help="of: wrong, stale (the class changed since the kernel was validated), regressed (slower than the "
        "fastest kernel before), slower (than eager or torch.compile); exit status 1 for these (default: wrong,regressed)",
    )
    formats = check.add_mutually_exclusive_group()
    formats.add_argument(
        "--format", choices=["text", "json", "sarif", "junit", "github"], default="text", help="default: text"
    )
    formats.add_argument("--json", action="store_const", dest="format", const="json", help="the same as --format json")
    check.add_argument(
        "--output", type=Path, metavar="FILE", help="write it to a file, and print the table on standard output"
    )


def _history(history: argparse.ArgumentParser) -> None:
    """``kernel-lsp history [FILE::CLASS | PATH]``; see docs/store.md."""
    from kernel_lsp.commands import argument_types

    history.add_argument(
        "target", nargs="?", default=".", metavar="FILE::CLASS", help="a class; a file or folder means all in it"
    )
    history.add_argument(
        "--last", type=argument_types.count, default=20, metavar="N", help="the last so many of each (default: 20)"
    )
    history.add_argument("--html", type=Path, metavar="FILE", help="write it as a page for a browser, with a plot, too")
    history.add_argument("--svg", type=Path, metavar="FILE", help="save the table as a picture, too")


def _store(store: argparse.ArgumentParser, output: argparse.ArgumentParser) -> None:
    """``kernel-lsp store info | prune | export | import``; see docs/store.md."""
    from kernel_lsp.commands import argument_types

    actions = store.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("info", parents=[output], help="where it is, and what it holds")
    prune = actions.add_parser(
        "prune", parents=[output], help="remove old verdicts; the latest of each class, device and bounds stays"
    )
    prune.add_argument("--older-than", type=argument_types.days, metavar="DAYS", help="remove what is older")
    prune.add_argument(
        "--keep",
        type=argument_types.count,
        metavar="N",
        help="but the latest N of each class, device and bounds (default: 1)",
    )
    export = actions.add_parser("export", parents=[output], help="write all verdicts and kernels as JSON lines")
    export.add_argument("file", type=Path, metavar="FILE")
    export.add_argument(
        "--format",
        choices=["store", "kernelbook"],
        default="store",
        help="store: all there is, for import (default); kernelbook: your modules with their kernels, to train a model on",
    )
    take = actions.add_parser("import", parents=[output], help="merge what another store exported, as history")
    take.add_argument("file", type=Path, metavar="FILE")


def _models(
    models: argparse.ArgumentParser, output: argparse.ArgumentParser, *running: argparse.ArgumentParser
) -> None:
    """``kernel-lsp models list | pull | remove | try``; see docs/models.md."""
    actions = models.add_subparsers(dest="action", required=True, metavar="ACTION")
    name = "a known model, or ORGANISATION/REPOSITORY on the Hugging Face Hub; for a GGUF with :QUANTISATION or :FILE"
    offline = "ask the network for nothing (as HF_HUB_OFFLINE=1 does)"

    listing = actions.add_parser("list", parents=[output], help="the known models, and all that are in the cache")
    listing.add_argument("--offline", action="store_true", help=offline)

    pull = actions.add_parser("pull", parents=[output], help="fetch a model, or go on fetching it")
    pull.add_argument("name", metavar="NAME", help=name)
    pull.add_argument("-y", "--yes", action="store_true", help="take what is proposed and accept the licence")
    pull.add_argument("--accept-licence", "--accept-license", action="store_true", help="accept the model's licence")
    pull.add_argument("--force", action="store_true", help="fetch it even if this machine has too little memory for it")
    pull.add_argument("--offline", action="store_true", help=offline)
    pull.add_argument("--json-progress", action="store_true", help="print JSON lines with fraction and message")

    remove = actions.add_parser("remove", parents=[output], help="delete a model from the cache")
    remove.add_argument("name", metavar="NAME", help=name)
    remove.add_argument("-y", "--yes", action="store_true", help="do not ask")

    attempt = actions.add_parser("try", parents=list(running), help="have one model write kernels for one class")
    attempt.add_argument(
        "name", metavar="NAME", help="a model that is here, a folder or .gguf file, or http://HOST/v1[#MODEL]"
    )
    attempt.add_argument("target", metavar="FILE::CLASS")
    attempt.add_argument("--samples", type=int, default=1, help="how many answers (default: 1)")
    attempt.add_argument("--write", action="store_true", help="write the kernel file if an answer is correct")


def _log(verbose: bool) -> None:
    import logging

    level = logging.INFO if verbose else logging.ERROR
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(name)s: %(message)s", datefmt="%H:%M:%S")


if __name__ == "__main__":
    sys.exit(main())
