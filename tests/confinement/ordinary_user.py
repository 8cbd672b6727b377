"""Running Python as a user without powers, where root runs the tests and has Python in a home folder."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path

NOBODY = 65534
_NEEDED = (sys.base_prefix, sys.prefix, str(Path(__file__).parents[2]))


def as_nobody(folder: str) -> list[str]:
    """A command that runs Python as ``NOBODY``. ``folder``: an empty one, for what the command mounts for itself."""
    lines: list[str] = []
    closed: dict[str, list[str]] = {}
    for path in _NEEDED:
        if outer := _closed_above(path):
            closed.setdefault(outer, []).append(path)
    for number, (outer, inner) in enumerate(closed.items()):
        kept = [(path, os.path.join(folder, f"{number}-{count}")) for count, path in enumerate(inner)]
        for path, place in kept:
            os.mkdir(place)
            lines.append(f"mount --bind {shlex.quote(path)} {shlex.quote(place)}")
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(outer)}")
        for path, place in kept:
            lines.append(f"mkdir -p {shlex.quote(path)} && mount --move {shlex.quote(place)} {shlex.quote(path)}")
    lines.append(f'exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs -- "$@"')
    return ["unshare", "-m", "--propagation", "private", "sh", "-e", "-c", "\n".join(lines), "--", sys.executable]


def _closed_above(path: str) -> str:
    """The outermost folder around a path that is not for everybody; "" where all are."""
    around = [str(one) for one in Path(path).parents][::-1]
    return next((one for one in around if not os.stat(one).st_mode & stat.S_IXOTH), "")
