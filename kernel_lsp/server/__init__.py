"""The language server: what an editor talks to. It never imports torch, triton or numpy."""

from __future__ import annotations

import argparse
import logging


def main(argv: list[str]) -> int:
    """Run the server with command line arguments (``--stdio``, the default, or ``--tcp HOST:PORT``); the exit status."""
    parser = argparse.ArgumentParser(
        prog="kernel-lsp serve", description="Serve an editor over the language server protocol."
    )
    parser.add_argument("--stdio", action="store_true", help="on standard input and output (the default)")
    parser.add_argument("--tcp", metavar="HOST:PORT", help="on a port instead; port 0 picks a free one")
    parser.add_argument("--log-level", default="warning", choices=["debug", "info", "warning", "error"])
    options = parser.parse_args(argv)

    from .control import transport  # pygls takes a second to import; --help need not wait for it

    transport.set_up_logging(getattr(logging, options.log_level.upper()))
    if options.tcp is None:
        return transport.serve_stdio()
    try:
        host, port = transport.parse_address(options.tcp)
    except ValueError:
        parser.error(f"--tcp wants HOST:PORT, not {options.tcp!r}")
    return transport.serve_tcp(host, port)
