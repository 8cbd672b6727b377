"""Make an animated picture of a session in VS Code, from the frames that its film left (make screenshots).

    python tools/recording.py [FRAMES] [--output PICTURE.webp]

FRAMES has a PNG for each frame, named by its milliseconds. Frames between which nothing has changed become one, and waiting is cut
short: what a kernel's validation takes depends on the machine.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

from PIL import Image, ImageChops

ROOT = Path(__file__).resolve().parent.parent
FRAMES = ROOT / ".editors" / "vscode" / "frames"
PICTURE = ROOT / "docs" / "images" / "vscode-session.webp"

#: pixels
WIDTH = 1000
#: milliseconds: how long one frame stands at most, at least, and the last one
LONGEST, SHORTEST, END = 1200, 120, 2500
#: share of the pixels that have to differ by more than ``LEAST``, of 255: a caret that blinks is no change
SHARE, LEAST = 2e-4, 24
#: share of the height, at the bottom: what changes in the status bar alone is no change
STATUS_BAR = 0.05
MOST_BYTES = 2_000_000


def frames_of(folder: Path) -> list[tuple[int, Image.Image]]:
    """The frames in order, scaled: milliseconds and picture."""
    found = []
    for path in sorted(folder.glob("*.png")):
        with Image.open(path) as whole:
            size = (WIDTH, round(whole.height * WIDTH / whole.width))
            found.append((int(path.stem), whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)))
    return found


def is_change(before: Image.Image, after: Image.Image) -> bool:
    """Whether there is a step of the session between two frames."""
    area = (0, 0, before.width, round(before.height * (1 - STATUS_BAR)))
    difference = ImageChops.difference(before.crop(area), after.crop(area)).convert("L")
    differing = difference.point(lambda value: 255 if value > LEAST else 0).histogram()[255]
    return differing > SHARE * before.width * before.height


def cut(frames: list[tuple[int, Image.Image]]) -> tuple[list[Image.Image], list[int]]:
    """The pictures to show, and how long each: equal ones once, waiting cut short."""
    shown: list[tuple[int, Image.Image]] = []
    for at, picture in frames:
        if shown and not is_change(shown[-1][1], picture):
            continue
        if shown and at - shown[-1][0] < SHORTEST:
            shown[-1] = (shown[-1][0], picture)  # on the way to this one
        else:
            shown.append((at, picture))
    times = [at for at, _ in shown]
    durations = [min(after - at, LONGEST) for at, after in itertools.pairwise(times)]
    return [picture for _, picture in shown], [*durations, END]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frames", nargs="?", type=Path, default=FRAMES)
    parser.add_argument("--output", type=Path, default=PICTURE)
    options = parser.parse_args()
    frames = frames_of(options.frames)
    if len(frames) < 2:
        print(f"recording.py: {options.frames} has no film. Run: make screenshots", file=sys.stderr)
        return 1
    pictures, durations = cut(frames)
    pictures[0].save(
        options.output,
        save_all=True,
        append_images=pictures[1:],
        duration=durations,
        loop=0,
        quality=75,
        method=4,
        minimize_size=True,
    )
    size = options.output.stat().st_size
    print(f"{options.output.name}: {len(pictures)} pictures, {sum(durations) / 1000:.1f} s, {size / 1e6:.2f} MB")
    if size > MOST_BYTES:
        print(f"recording.py: more than {MOST_BYTES / 1e6:.0f} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
