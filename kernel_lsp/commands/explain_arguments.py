"""What ``kernel-lsp explain`` takes. Nothing else is imported: the command line looks here whatever was typed."""

from __future__ import annotations

import argparse

from kernel_lsp import nearest
from kernel_lsp.targets import NAMED, named


def add(explain: argparse.ArgumentParser) -> None:
    """``kernel-lsp explain FILE::CLASS``; see docs/synthesizer.md."""
    explain.add_argument(
        "class_path",
        metavar="FILE::CLASS",
        help="a class; a file means its only one, or the only one with example inputs",
    )
    stages = ["graph", "kernels", "schedule", "text"]
    explain.add_argument("--stage", choices=stages, help="this stage only (default: all)")
    explain.add_argument(
        "--target",
        type=_gpu,
        metavar="GPU",
        help="the GPU that schedules are chosen and estimated for: A100, H100, L4, … (default: H100)",
    )
    explain.add_argument(
        "--bounds", choices=["trust", "check"], help="whether kernels check their indices (default: trust)"
    )
    explain.add_argument(
        "--precision", choices=["strict", "tf32", "half"], help="of float32 products (default: strict)"
    )
    explain.add_argument(
        "--keep-packed-weights",
        action="store_true",
        default=None,
        help="keep what is computed of weights alone from call to call (default: it is computed in every call)",
    )
    explain.add_argument(
        "--leave",
        type=_operators,
        default=[],
        metavar="OP[,OP]",
        help="operators to leave to torch, for instance conv2d (default: none that can be lowered)",
    )
    explain.add_argument(
        "--example", type=_number, default=1, metavar="N", help="which of several example inputs (default: 1)"
    )
    explain.add_argument("--seconds", type=float, help="time budget (default: 300)")


def _number(text: str) -> int:
    """A number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


def _gpu(text: str) -> str:
    """The name of a GPU with known figures, however its letters are written."""
    if (known := named(text)) is not None:
        return known.name
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(NAMED)}{nearest.hint(text.upper(), NAMED)}")


def _operators(text: str) -> list[str]:
    """ATen operators as lowerings name them: ``aten.conv2d``."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    return [word if "." in word else f"aten.{word}" for word in words]
