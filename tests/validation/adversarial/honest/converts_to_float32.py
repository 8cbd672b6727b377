"""An embedding of a timestep in float32, beside which float64 does not run as it is; it rounds as eager does, in other places."""

from tests.validation.adversarial.material import HONEST, of_time

MODULE, KERNEL = of_time("tl.sum(off * off, axis=0) / n")
EXPECTED = HONEST
