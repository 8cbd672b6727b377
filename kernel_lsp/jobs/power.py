"""Whether the machine runs on its battery: background work then waits."""

from __future__ import annotations

import sys
from pathlib import Path

SUPPLIES = Path("/sys/class/power_supply")


def on_battery() -> bool:
    """As Linux's kernel does, elsewhere as psutil says where it is installed; a machine without a battery is on none."""
    if sys.platform == "linux":  # psutil reads the same files, and takes a megabyte of the server's memory
        return discharging(SUPPLIES)
    try:
        import psutil
    except ImportError:
        return False
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError, ValueError):  # not on every system
        return False
    return battery is not None and battery.power_plugged is False


def discharging(folder: Path) -> bool:
    """Whether a battery of the machine's own in Linux's ``folder`` of power supplies is discharging, and no mains is online."""
    try:
        supplies = list(folder.iterdir())
    except OSError:
        return False
    if any(_said(one, "type") in ("Mains", "USB") and _said(one, "online") == "1" for one in supplies):
        return False
    # scope: "Device" is a mouse's or a keyboard's
    batteries = [one for one in supplies if _said(one, "type") == "Battery" and _said(one, "scope") != "Device"]
    return any(_said(one, "status") == "Discharging" for one in batteries)


def _said(supply: Path, what: str) -> str:
    try:
        return (supply / what).read_text().strip()
    except OSError:
        return ""
