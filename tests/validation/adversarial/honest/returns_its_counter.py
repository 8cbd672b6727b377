"""Counts its calls in a buffer, as the module does, and returns that buffer itself beside the result."""

from tests.validation.adversarial.honest.counts_calls import KERNEL as COUNTING
from tests.validation.adversarial.honest.counts_calls import MODULE as COUNTING_MODULE
from tests.validation.adversarial.material import HONEST

MODULE = COUNTING_MODULE.replace("return x * self.calls", "return x * self.calls, self.calls").replace(
    "torch.zeros(())", "torch.zeros((), dtype=torch.long)"
)
KERNEL = COUNTING.replace("return y", "return y, self.calls")
EXPECTED = HONEST
