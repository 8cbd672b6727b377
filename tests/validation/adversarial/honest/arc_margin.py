"""Is right also where the angle to the target is near a straight one, which no random features come near to."""

from tests.validation.adversarial.material import HONEST, arc_margin

MODULE, KERNEL = arc_margin("cosine - 0.23971277")
EXPECTED = HONEST
