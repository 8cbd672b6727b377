"""Text: kernels, the host function, the class, formulas."""
