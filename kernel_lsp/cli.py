"""The ``kernel-lsp`` command: its arguments, and which room does the work.

Exit status: 0 as wanted, 1 the kernel is wrong, regressed or none was found, 2 it could not be judged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        # An editor waits for this one: nothing but the server is imported on the way.
        from kernel_lsp.server import main as serve

        return serve(arguments[1:])
    options = _parser().parse_args(arguments)
    _log(options.verbose)
    import importlib

    module = {"check": "validate"}.get(options.command, options.command)
    status: int = importlib.import_module(f"kernel_lsp.commands.{module}").run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    import argparse

    from kernel_lsp import __version__, generators

    output = argparse.ArgumentParser(add_help=False)
    output.add_argument("--json", action="store_true", help="print one JSON document on standard output, nothing else")
    output.add_argument("-v", "--verbose", action="store_true", help="log what goes on, and what the worker says")
    shared = argparse.ArgumentParser(add_help=False, parents=[output])
    shared.add_argument("--interpreter", help="the Python that has torch and triton (default: the one that runs this)")

    judging = argparse.ArgumentParser(add_help=False)
    judging.add_argument("--device", help="auto, cuda, cuda:N or interpreter (default: auto)")
    judging.add_argument("--seconds", type=float, help="time budget of each job (default: 300)")
    judging.add_argument("--thorough", action="store_true", help="make every check, whatever it takes")
    judging.add_argument(
        "--bounds", choices=["trust", "check"], help="whether kernels check their indices (default: trust)"
    )
    judging.add_argument("--no-write", action="store_true", help="write no file")
    judging.add_argument("--svg", type=Path, metavar="FILE", help="save the table as a picture, too")

    parser = argparse.ArgumentParser(
        prog="kernel-lsp", description="From a PyTorch nn.Module to a validated Triton kernel."
    )
    parser.add_argument("--version", action="version", version=f"kernel-lsp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("serve", help="run the language server (kernel-lsp serve --help)", add_help=False)

    generate = commands.add_parser(
        "generate", parents=[shared, judging], help="generate a validated kernel for each class"
    )
    generate.add_argument("targets", nargs="+", metavar="FILE::CLASS", help="a class; a file or folder means all in it")
    generate.add_argument(
        "--generator",
        metavar="NAME[,NAME]",
        help=f"of: {', '.join(generators.names())} (default: every one that can run here)",
    )
    generate.add_argument("--samples", type=int, help="at most this many candidates of each generator (default: 10)")
    generate.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page for a browser, too")
    generate.add_argument("--overwrite", action="store_true", help="replace kernel files that were edited")
    generate.add_argument(
        "--may-fail",
        action="append",
        default=[],
        metavar="FILE::CLASS",
        help="a class that is known not to work: shown with its reason, but not counted in the exit status",
    )

    validate = commands.add_parser("validate", parents=[shared, judging], help="judge a kernel file again")
    validate.add_argument("targets", nargs="+", metavar="KERNEL_FILE")

    check = commands.add_parser("check", parents=[shared, judging], help="judge every kernel file found again")
    check.add_argument("targets", nargs="*", metavar="PATH", help="files or folders (default: this folder)")

    _eval(
        commands.add_parser("eval", help="validate kernels for every problem of a suite, and score them"),
        shared,
        generators.names(),
    )

    commands.add_parser("doctor", parents=[shared], help="say whether everything needed is here, and how to get it")
    _models(
        commands.add_parser("models", help="language models: what is here, fetch, remove or try one"),
        output,
        shared,
        judging,
    )
    return parser


def _eval(evaluation: argparse.ArgumentParser, shared: argparse.ArgumentParser, generators: list[str]) -> None:
    """``kernel-lsp eval kernelbench | folder``; see docs/evaluation.md."""
    import argparse

    options = argparse.ArgumentParser(add_help=False, parents=[shared])
    options.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="where the problems are")
    options.add_argument("--mode", choices=["eval", "train"], default="eval", help="of the modules (default: eval)")
    options.add_argument("--generator", metavar="NAME[,NAME]", help=f"of: {', '.join(generators)}")
    options.add_argument("--samples", type=int, help="at most this many candidates of each generator (default: 10)")
    options.add_argument(
        "--baseline",
        metavar="MODE[,MODE]",
        help="modes of torch.compile to time against: default, reduce-overhead, max-autotune; none for eager alone",
    )
    options.add_argument(
        "--stand-ins",
        type=Path,
        metavar="FILE",
        help="times of torch.compile from elsewhere, for where eager agrees within 5 %% (docs/evaluation.md)",
    )
    options.add_argument("--device", help="auto (every GPU here), cuda, cuda:N or interpreter (default: auto)")
    options.add_argument("--seconds", type=float, help="time budget of each problem (default: 300)")
    options.add_argument("--executor", choices=["local", "ray"], default="local", help="ray: the GPUs of a Ray cluster")
    options.add_argument("--workers", type=_count, metavar="N", help="problems at once (default: one a GPU, else 1)")
    options.add_argument(
        "--results", type=Path, metavar="FILE", help="the results file, a line a problem (default: a new one here)"
    )
    options.add_argument(
        "--resume",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="do not run again what is in these; the first is written to",
    )
    options.add_argument(
        "--retry", metavar="STATUS[,STATUS]", help="with --resume: run these again, for instance failed"
    )
    options.add_argument("--markdown", type=Path, metavar="FILE", help="write the scores as Markdown, too")
    options.add_argument("--html", type=Path, metavar="FILE", help="write them as a page for a browser, too")

    suites = evaluation.add_subparsers(dest="suite", required=True, metavar="SUITE")
    kernelbench = suites.add_parser(
        "kernelbench", parents=[options], help="a checkout of KernelBench, or some of its folders"
    )
    kernelbench.add_argument("--level", metavar="N[,N]", help="these levels only (default: 1,2,3)")
    kernelbench.add_argument(
        "--problem", metavar="N[-N][,…]", help="these numbers only, of each level: 1-20,47 or 2:47"
    )
    suites.add_parser("folder", parents=[options], help="the modules with example inputs in a folder of your own")


def _count(text: str) -> int:
    import argparse

    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


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
