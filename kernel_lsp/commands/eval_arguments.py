"""What ``kernel-lsp eval`` takes. Nothing else is imported: the command line looks here whatever was typed."""

from __future__ import annotations

import argparse
from pathlib import Path

from kernel_lsp.commands import argument_types


def add(evaluation: argparse.ArgumentParser, shared: argparse.ArgumentParser, generators: list[str]) -> None:
    """``kernel-lsp eval kernelbench | folder``; see docs/evaluation.md."""
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
    options.add_argument(
        "--precision",
        choices=["strict", "tf32", "half"],
        default="strict",
        help="of float32 products; what is not strict is shown apart, and counts at 1e-2 alone (default: strict)",
    )
    options.add_argument(
        "--keep-packed-weights",
        action="store_true",
        help="of kernels: keep what they compute of weights alone from call to call; such results are marked",
    )
    options.add_argument("--device", help="auto (every GPU here), cuda, cuda:N or interpreter (default: auto)")
    options.add_argument("--seconds", type=float, help="time budget of each problem (default: 300)")
    options.add_argument("--executor", choices=["local", "ray"], default="local", help="ray: the GPUs of a Ray cluster")
    options.add_argument(
        "--workers", type=argument_types.count, metavar="N", help="problems at once (default: one a GPU, else 1)"
    )
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
