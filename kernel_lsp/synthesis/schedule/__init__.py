"""How a kernel is tiled, and which choices are worth timing."""
