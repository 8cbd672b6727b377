"""Is wrong for negative scales: those of the constructor are positive, and so are those that are moved off their values."""

from tests.validation.adversarial.material import elementwise, replaced

MODULE = """
class Signed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))
    def forward(self, x):
        return torch.where(self.scale > 0, x * self.scale, x - self.scale)
def get_inputs(): return [torch.randn(7, 40)]
"""
KERNEL = replaced(elementwise("Signed", "tl.where(s > 0, x * s, x + s)"), "x_ptr, y_ptr", "x_ptr, s_ptr, y_ptr")
KERNEL = replaced(KERNEL, "    tl.store", "    s = tl.load(s_ptr)\n    tl.store")
KERNEL = replaced(KERNEL, "](x, y", "](x, self.scale, y")
KERNEL = replaced(KERNEL, "(torch.is_grad_enabled() and x.requires_grad)", "torch.is_grad_enabled()")
EXPECTED = {"wrong"}
