"""Which files changed, by any program: folders are watched, and a burst of changes is told of once.

The standard library and watchdog, imported where a watcher starts.
"""

from .tree import Stamp, Tree, stamp
from .watcher import Watcher

__all__ = ["Stamp", "Tree", "Watcher", "stamp"]
