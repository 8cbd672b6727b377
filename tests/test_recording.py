"""The recording in the README: changes are shown, waiting is cut short, and it stays small."""

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "vscode-session.webp"


def record(folder: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "recording.py", folder, "--output", output]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def shown(picture: Path) -> list[tuple[int, tuple[int, int, int]]]:
    """Of each picture how long it stands, and the colour of its middle."""
    found = []
    with Image.open(picture) as whole:
        for i in range(whole.n_frames):
            whole.seek(i)
            whole.load()
            found.append((whole.info["duration"], whole.convert("RGB").getpixel((whole.width // 2, whole.height // 2))))
    return found


def test_equal_frames_are_one_and_waiting_is_cut_short(tmp_path):
    frames = tmp_path / "frames"
    frames.mkdir()
    for at, colour in ((0, "red"), (300, "red"), (400, "blue"), (450, "white"), (30_000, "black")):
        Image.new("RGB", (1800, 900), colour).save(frames / f"{at:07}.png")
    done = record(frames, tmp_path / "film.webp")
    assert done.returncode == 0, done.stderr
    film = shown(tmp_path / "film.webp")
    assert [duration for duration, _ in film] == [400, 1200, 2500]  # red, white (blue was on the way to it), black
    assert [max(colour) > 128 for _, colour in film] == [True, True, False]
    with Image.open(tmp_path / "film.webp") as whole:
        assert whole.size == (1000, 500)


def test_without_a_film_it_says_what_to_do(tmp_path):
    done = record(tmp_path, tmp_path / "film.webp")
    assert done.returncode == 1 and "make screenshots" in done.stderr


def test_the_recording_of_the_readme_is_one_and_small():
    assert PICTURE.relative_to(ROOT).as_posix() in re.findall(
        r"!\[[^\]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text("utf-8")
    )
    assert PICTURE.stat().st_size < 2_000_000
    film = shown(PICTURE)
    assert len(film) > 20 and 5_000 < sum(duration for duration, _ in film) < 60_000
