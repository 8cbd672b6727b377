"""The settings of isort, as ruff takes them: ``[tool.isort]`` in pyproject.toml, or ``[settings]`` in .isort.cfg.

ruff sorts imports as isort does; its documentation ("lint.isort") says which settings it has.
"""

from __future__ import annotations

import configparser
import glob
import json
from pathlib import Path
from typing import Any

_FLAGS = (
    *("case_sensitive", "combine_as_imports", "force_single_line", "force_sort_within_sections", "from_first"),
    *("length_sort", "length_sort_straight", "no_sections", "order_by_type"),
)
_NUMBERS = ("lines_after_imports", "lines_between_types")
_LISTS = (
    *("force_to_top", "known_first_party", "known_local_folder", "known_third_party", "single_line_exclusions"),
    "extra_standard_library",
)


def of_folder(folder: Path, tools: dict[str, Any]) -> dict[str, Any] | None:
    """The settings of isort in a folder; ``tools``: those in its pyproject.toml. None where there are none.

    Of its profiles, only "black" is as ruff sorts; what another one sets is left out.
    """
    if isinstance(found := tools.get("isort"), dict):
        return found
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string((folder / ".isort.cfg").read_text("utf-8"))
        return dict(parser["settings"])
    except (OSError, ValueError, KeyError, configparser.Error):  # not there, or no such file
        return None


def options(settings: dict[str, Any], folder: Path) -> list[str]:
    """ruff's options for sorting imports as isort does in ``folder``. What ruff does not have, or cannot be, is left out."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in _FLAGS and (flag := _flag(value)) is not None:
            found[name] = flag
        elif name in _NUMBERS and (number := _number(value)) is not None:
            found[name] = number
        elif name in _LISTS and (listed := _listed(value)):
            found[name] = listed
    # ruff takes patterns for places.
    places = [glob.escape(str(folder / place)) for place in (*_listed(settings.get("src_paths")), ".", "src")]
    lines = [f"src = {_toml(places)}"]
    lines += [f"lint.isort.{name.replace('_', '-')} = {_toml(value)}" for name, value in found.items()]
    return [f"--config={line}" for line in lines]


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _flag(value: Any) -> bool | None:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return value if isinstance(value, bool) else words.get(str(value).strip().lower())


def _number(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) if text.isdecimal() and int(text) < 10 else None


def _listed(value: Any) -> list[str]:
    """isort takes a list, or words with commas or lines between them."""
    words = value if isinstance(value, list) else str(value or "").replace("\n", ",").split(",")
    return [word.strip() for word in words if isinstance(word, str) and word.strip()]
