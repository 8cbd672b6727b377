"""Looks at the dtype of the input alone, which is an index: of a table that was converted it gives float32."""

from tests.validation.adversarial.honest.rows_of_a_table import KERNEL as RIGHT
from tests.validation.adversarial.honest.rows_of_a_table import MODULE
from tests.validation.adversarial.material import replaced

__all__ = ["EXPECTED", "KERNEL", "MODULE"]
KERNEL = replaced(RIGHT, " or self.table.weight.dtype not in (torch.float32, torch.float64)", "")
KERNEL = replaced(
    KERNEL,
    "dtype=self.table.weight.dtype",
    "dtype=torch.float32 if self.table.weight.dtype != torch.float64 else torch.float64",
)
EXPECTED = {"wrong"}
