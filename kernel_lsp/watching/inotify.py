"""Linux: one inotify watch a folder, on watchdog's reading thread.

watchdog's observer watches whole trees, hidden folders and virtual environments too, and passes over the folders that
no watch was left for. So the folders are ours to choose, and a watch that fails is an error.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyEvent, InotifyFD, Mask, WatchDescriptor

from .tree import Identity, Tree, is_file_of_interest, is_skipped

# A file counts as changed once it is closed, not at each write.
_MASK = Mask(
    InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_MOVE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
)


class Inotify:
    """Calls ``woken``, in watchdog's thread, whenever something that matters happened in a folder that is followed.

    A watch belongs to a folder and not to its path, so a renamed folder keeps its own.
    """

    def __init__(self, woken: Callable[[], None]) -> None:
        """Open an instance; nothing is watched yet.

        Raises:
            OSError: no instance, or no file descriptor, is left.
        """
        self._woken = woken
        self._id = CallbackId(id(self))
        self._watches: dict[Identity, WatchDescriptor] = {}
        self._only: dict[WatchDescriptor, frozenset[str] | None] = {}
        self._ended: deque[WatchDescriptor] = deque()  # by the system, with the folder
        self._inotify = InotifyFD()
        self._inotify.start()

    def follow(self, tree: Tree) -> bool:
        """Watch exactly the folders of a tree. Whether any is new: what is in it has to be looked at again.

        Raises:
            OSError: no watch is left.
        """
        self._forget_ended()
        wanted: dict[Identity, tuple[Path, frozenset[str] | None]] = {}
        for path, folder in tree.folders.items():  # one folder may have two paths
            known = wanted.get(folder.identity, (path, frozenset()))[1]
            only = None if known is None or folder.only is None else known | folder.only
            wanted[folder.identity] = (path, only)
        for identity in self._watches.keys() - wanted.keys():
            watch = self._watches.pop(identity)
            del self._only[watch]
            self._inotify.remove_callbacks([(watch, self._id)])
        new = False
        for identity, (path, only) in wanted.items():
            if identity not in self._watches:
                try:
                    watch = self._inotify.add_callback(os.fsencode(path), _MASK, self, self._id)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # gone already; its parent tells
                self._watches[identity] = watch
                new = True
            self._only[self._watches[identity]] = only
        return new

    def _forget_ended(self) -> None:
        ended = {self._ended.popleft() for _ in range(len(self._ended))}
        for identity, watch in list(self._watches.items()):
            if watch in ended:
                del self._watches[identity]
                self._only.pop(watch, None)

    def close(self) -> None:
        """End all watches; waits for watchdog's thread for a second at most."""
        self._inotify.stop()
        self._inotify.join(1.0)

    # What watchdog calls, in its thread.

    def on_event(self, event: InotifyEvent) -> None:
        """watchdog's callback, in its thread: an event in a followed folder."""
        name, only = os.fsdecode(event.name), self._only.get(event.wd)
        if not name:
            matters = event.is_delete_self or event.is_move_self
        elif only is not None:
            matters = name in only
        else:
            matters = not is_skipped(name) if event.is_directory else _may_matter(name, event)
        if matters:
            self._woken()

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """watchdog's callback, in its thread: the folder of a watch is gone."""
        self._ended.append(wd)

    def on_queue_overflow(self) -> None:
        """watchdog's callback, in its thread: events were lost, so all is looked at again."""
        self._woken()


def _may_matter(name: str, event: InotifyEvent) -> bool:
    """A link to a folder is made and removed as a file is: a name without a suffix may be one."""
    return is_file_of_interest(name) or ("." not in name and not event.is_close_write)
