"""From the exported ATen graph to ``graph.Graph``: one small file per family of operators."""

from . import registry
from .lower import lower

registry.load()

__all__ = ["lower"]
