"""Whether a candidate is called as the module is: the names and the places of arguments, of its constructor and of forward."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def difference(mine: type, theirs: type) -> str:
    """What the constructor or forward of ``mine`` does not take and that of ``theirs`` does; empty where there is nothing.

    A method whose arguments cannot be told, a scripted one for instance, is passed over.
    """
    for name, called in (("__init__", "constructor"), ("forward", "forward")):
        if getattr(mine, name) is getattr(theirs, name):
            continue
        try:
            said = _missing(getattr(mine, name), getattr(theirs, name))
        except (TypeError, ValueError):
            continue
        if said:
            return f"'s {called} {said}"
    return ""


def _missing(mine: Callable[..., Any], theirs: Callable[..., Any]) -> str:
    own = list(inspect.signature(mine).parameters.values())[1:]
    by_place = [one.name for one in own if one.kind in _BY_PLACE]
    by_name = {one.name for one in own if one.kind in _BY_NAME}
    any_place = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in own)
    any_name = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in own)
    places = 0
    for one in list(inspect.signature(theirs).parameters.values())[1:]:
        if one.kind in _BY_NAME and one.name not in by_name and not any_name:
            return f"has no argument {one.name!r}, the module's has"
        if one.kind in _BY_PLACE:
            if one.name in by_place and by_place.index(one.name) != places:
                return f"has argument {one.name!r} at another place than the module's"
            if places >= len(by_place) and not any_place:
                return f"does not take {one.name!r} by its place, the module's does"
            places += 1
    return ""
