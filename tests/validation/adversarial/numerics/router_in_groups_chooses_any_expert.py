"""Of the best groups of experts the largest are wanted; it chooses by the last digits of the probabilities instead."""

from tests.validation.adversarial.honest import router_in_groups

MODULE = router_in_groups.MODULE
KERNEL = router_in_groups.SOFTMAX + "        return (p.float() * 65536).sin().topk(4)[1]\n"
EXPECTED = {"wrong"}
