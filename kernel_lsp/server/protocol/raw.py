"""JSON data past the converter of pygls, in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Raw:
    """A result that is JSON data already. Converting the objects of a long list takes longer than finding them."""

    data: Any


def json_data(value: Any) -> Any:
    """JSON data from what the converter made of it."""
    if isinstance(value, dict):
        return {str(k): json_data(v) for k, v in value.items()}
    if isinstance(value, list):
        return [json_data(item) for item in value]
    if hasattr(value, "_asdict"):
        return json_data(value._asdict())
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return json_data(vars(value))
    return value
