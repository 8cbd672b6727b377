"""From the exported ATen graph to ``graph.Graph``: one small file per family of operators."""

from .lower import lower

__all__ = ["lower"]
