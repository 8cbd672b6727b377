"""PyTorch's operators with sample inputs. ``expecttest``, which torch's test classes derive from, is not needed here."""

from __future__ import annotations

import importlib.util
import sys
import types
import unittest
from typing import Any


def operators() -> dict[tuple[str, str], Any]:
    """(name, variant) → OpInfo."""
    if importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return {(info.name, info.variant_test_name): info for info in op_db}
