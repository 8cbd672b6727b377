"""Systems other than Linux: watchdog's observer on each root, which the system watches as a whole at little cost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePath

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from .tree import Tree, is_file_of_interest, is_skipped


class Recursive(FileSystemEventHandler):
    """Calls ``woken``, in watchdog's thread, whenever something that matters happened under a root or beside it."""

    def __init__(self, woken: Callable[[], None]) -> None:
        self._woken = woken
        self._watches: dict[tuple[Path, bool], ObservedWatch] = {}
        self._observer = Observer()
        self._observer.start()

    def follow(self, tree: Tree) -> bool:
        """Watch the folders of a tree. Whether any watch is new.

        Raises:
            OSError: one cannot be made.
        """
        whole = [path for path, folder in tree.folders.items() if folder.only is None]
        tops = {(path, True) for path in whole if path.parent not in whole}
        wanted = tops | {(path, False) for path, folder in tree.folders.items() if folder.only is not None}
        for key in self._watches.keys() - wanted:
            self._observer.unschedule(self._watches.pop(key))
        new = wanted - self._watches.keys()
        for path, deep in new:
            self._watches[path, deep] = self._observer.schedule(self, str(path), recursive=deep)
        return bool(new)

    def close(self) -> None:
        """End all watches; waits for watchdog's thread for a second at most."""
        self._observer.stop()
        self._observer.join(1.0)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """watchdog's callback, in its thread: an event somewhere under what is followed."""
        if event.event_type in ("opened", "closed_no_write"):
            return
        for named in (event.src_path, event.dest_path):
            path = PurePath(os.fsdecode(named))
            if path.name and not any(is_skipped(part) for part in path.parts[1:-1]):
                name = path.name
                if (not is_skipped(name)) if event.is_directory else is_file_of_interest(name) or "." not in name:
                    self._woken()
                    return
