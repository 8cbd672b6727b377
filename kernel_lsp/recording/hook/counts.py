"""The recorded shapes and calls of each class, in bounded memory.

A sampled call stands for those since the sample before it. Of more shapes than are kept, the rarest is given up and
counted among the others.
"""

from __future__ import annotations

import random
from typing import Any

MOST_CLASSES = 300
MOST_SHAPES = 64  # of one class
MOST_INITS = 8
MOST_TIMES = 48  # of one shape
MOST_NUMBERS = 6  # distinct values of one number


class Times:
    """Seconds of calls, of which an even choice is kept."""

    def __init__(self) -> None:
        self.kept: list[float] = []
        self.seen = 0

    def add(self, seconds: float) -> None:
        """Keep or pass over one call's seconds: each of those seen is kept with equal chance.

        Source: Vitter, Random Sampling with a Reservoir, 1985, algorithm R.
        """
        self.seen += 1
        if len(self.kept) < MOST_TIMES:
            self.kept.append(seconds)
        elif (place := random.randrange(self.seen)) < MOST_TIMES:
            self.kept[place] = seconds

    def to_json(self) -> dict[str, Any] | None:
        """Median, 20th and 80th percentile in microseconds."""
        if not self.kept:
            return None
        ordered = sorted(self.kept)

        def at(share: float) -> float:
            return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e6, 2)

        return {"median": at(0.5), "low": at(0.2), "high": at(0.8), "runs": self.seen}


class Shape:
    """One kind of call: what it is given and how often. ``nested``: inside a call of the same class."""

    def __init__(self, call: dict[str, Any]) -> None:
        self.call = call
        self.calls = 0
        self.root_calls = 0  # of these, the ones that no other module's call was around
        self.nested_calls = 0
        self.outside = 0  # of these, the ones that the class's own envelope did not take
        self.host, self.device = Times(), Times()
        self.numbers: dict[str, list[int | float]] = {}

    def note_numbers(self, found: Any) -> None:
        """Note the values that plain numbers had, (name, value) each, up to a few for each name."""
        for name, value in found:
            known = self.numbers.setdefault(name, [])
            if value not in known and len(known) < MOST_NUMBERS:
                known.append(value)

    def to_json(self) -> dict[str, Any]:
        """As in the recording; numbers only where they differed between calls."""
        return self.call | {
            "calls": self.calls,
            "root_calls": self.root_calls,
            "nested_calls": self.nested_calls,
            "outside": self.outside,
            "host": self.host.to_json(),
            "device_time": self.device.to_json(),
            "numbers": {name: values for name, values in self.numbers.items() if len(values) > 1},
        }


class Class:
    """One class of modules. ``tracked``: its shapes are kept; of others only the time at the outermost level is.

    ``wrapper``: torch's own class around a module of the user's, whose call is the one that counts.
    """

    __slots__ = (
        "calls",
        "envelope",
        "identity",
        "inits",
        "last",
        "next",
        "others",
        "shapes",
        "stride",
        "tracked",
        "wrapper",
    )

    def __init__(self, identity: dict[str, Any], tracked: bool, envelope: Any = None, wrapper: bool = False) -> None:
        self.identity = identity
        self.tracked = tracked
        self.wrapper = wrapper
        self.envelope = envelope  # of a generated kernel: its method that says whether a call is inside
        self.calls = 0
        self.next = 1  # the call to sample next
        self.last = 0  # the call sampled last
        self.stride = 1
        self.shapes: dict[Any, Shape] = {}
        self.inits: list[dict[str, Any]] = []
        self.others = 0  # calls with shapes that were given up

    def shape(self, key: Any, make: Any) -> Shape:
        """The shape of a key, made by ``make()`` the first time."""
        found = self.shapes.get(key)
        if found is None:
            if len(self.shapes) >= MOST_SHAPES:
                rarest = min(self.shapes, key=lambda each: self.shapes[each].calls)
                given_up = self.shapes.pop(rarest)
                self.others += given_up.calls
            found = self.shapes[key] = Shape(make())
        return found

    def init(self, made: dict[str, Any]) -> int | None:
        """The number of a constructor's arguments; None where there are too many kinds."""
        if made in self.inits:
            return self.inits.index(made)
        if len(self.inits) >= MOST_INITS:
            return None
        self.inits.append(made)
        return len(self.inits) - 1

    def to_json(self) -> dict[str, Any]:
        """As in the recording, the most frequent shapes first."""
        shapes = sorted(self.shapes.values(), key=lambda shape: -shape.calls)
        return self.identity | {
            "tracked": self.tracked,
            "kernel": self.envelope is not None,
            "calls": self.calls,
            "shapes": [shape.to_json() for shape in shapes],
            "others": self.others,
            "inits": self.inits,
        }
