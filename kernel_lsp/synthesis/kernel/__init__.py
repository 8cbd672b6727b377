"""How a kernel computes: its domain, its accesses, its statements."""
