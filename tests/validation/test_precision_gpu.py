"""Kernels that round to TF32 as the tensor cores do, on a CUDA GPU."""

from __future__ import annotations

import pytest

from tests.validation.adversarial.honest.product_cut_to_ten_bits_as_asked import MODULE
from tests.validation.adversarial.honest.product_in_ten_bits_as_asked import PRODUCT

pytestmark = pytest.mark.gpu

#: that the operands have one sign makes the errors of what is cut off add up
KERNEL = PRODUCT.replace('input_precision="ieee"', 'input_precision="tf32"')


def test_what_tensor_cores_cut_off_is_right_where_tf32_was_asked_for_and_nowhere_else(validate):
    assert KERNEL != PRODUCT
    asked = validate(MODULE, "Product", KERNEL, device="cuda", seconds=120, precision="tf32")["verdict"]
    assert (asked["status"], asked["held_to"]) == ("ok", "tf32"), asked["reason"]
    assert asked["error"] > 1e-4  # five times what rounding to the nearest would be off by
    strict = validate(MODULE, "Product", KERNEL, device="cuda", seconds=120)["verdict"]
    assert strict["status"] == "wrong"
