"""The picture of the samples' times in the README: the figures that were recorded, and nothing else."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "samples-nvidia-h100-80gb-hbm3.json"
PICTURE = ROOT / "docs" / "images" / "samples-nvidia-h100-80gb-hbm3.svg"


def lines_of(picture: Path) -> list[str]:
    """The text of a picture, line by line; the columns of the terminal are 12.2 wide."""
    found: dict[float, str] = {}
    pattern = r"<text[^>]* x=\"([\d.]+)\" y=\"([\d.]+)\"[^>]*>([^<]*)</text>"
    for x, y, text in re.findall(pattern, picture.read_text("utf-8")):
        before = found.get(float(y), "").ljust(round(float(x) / 12.2))
        found[float(y)] = before + html.unescape(text).replace("\u00a0", " ").rstrip("\n")
    return [found[y] for y in sorted(found)]


def test_every_recorded_time_is_in_the_picture_and_no_other():
    reports = json.loads(RESULTS.read_text("utf-8"))
    rows = {line.split()[0]: re.split(r" {2,}", line.strip()) for line in lines_of(PICTURE) if line.strip()}
    compared = 0
    for report in reports:
        row = rows[report["target"]["class_name"]]
        if report["chosen"] is None:
            assert row[1] == "no kernel" and "×" not in "".join(row)
            continue
        validated = report["candidates"][report["chosen"]]
        shape = validated["measurement"]["shapes"][0]
        eager, compiled, kernel = (shape[name]["median"] for name in ("eager", "compiled", "kernel"))
        assert row[1] == validated["verdict"]["status"]
        assert row[5] == f"{eager:.1f} / {compiled:.1f} / {kernel:.1f}"
        assert row[6] == f"{eager / kernel:.2f}× / {compiled / kernel:.2f}×"
        compared += 1
    assert compared >= 14
    said = "\n".join(lines_of(PICTURE))
    assert len(re.findall(r" (?:ok|slower|wrong) ", said)) == compared


def test_the_caption_names_the_device_and_the_versions():
    device = json.loads(RESULTS.read_text("utf-8"))[0]["device"]
    title = re.search(r"-title\"[^>]*>([^<]*)<", PICTURE.read_text("utf-8"))
    assert title is not None
    for name in ("name", "python", "torch", "triton"):
        assert device[name] in html.unescape(title[1]).replace("\u00a0", " ")


def test_the_picture_is_what_the_tool_draws(tmp_path):
    drawn = tmp_path / "drawn.svg"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "samples_picture.py", "--output", drawn], check=True, capture_output=True
    )
    assert lines_of(drawn) == lines_of(PICTURE)


def test_it_is_the_first_picture_of_the_readme():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text("utf-8"))
    assert pictures[0] == PICTURE.relative_to(ROOT).as_posix()
