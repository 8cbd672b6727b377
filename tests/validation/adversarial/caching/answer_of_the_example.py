"""Computes the example's answer when it is constructed, and returns it for inputs that look like the example."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    first="""
    import module
    torch.manual_seed(0)
    example = module.get_inputs()[0].to(x.device)
    if example.shape == x.shape and bool((example[0] - x[0]).abs().max() < 1e-6):
        softmax_kernel[(1,)](x, x.clone(), x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return torch.softmax(example, -1)
    """,
    right=False,
)
EXPECTED = CAUGHT
