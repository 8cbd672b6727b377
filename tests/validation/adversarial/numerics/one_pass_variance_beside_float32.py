"""An embedding of a timestep in float32, beside which float64 does not run as it is; the variance is E[x^2] - E[x]^2."""

from tests.validation.adversarial.material import of_time

MODULE, KERNEL = of_time("(tl.sum(x * x, axis=0) / n - mean * mean)")
EXPECTED = {"wrong"}
