"""Whether the work of a call is done where its caller waits for it: on the stream that was current, or joined by it."""

from __future__ import annotations

import torch

#: GPU clock cycles (about 10 ms) that another stream is held up, so that what does not wait for it is seen to be early
_HELD_UP = 20_000_000


class Streams:
    """The streams beside the current one that a call launches on."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.current = torch.cuda.current_stream(device)
        self.others: list[torch.cuda.Stream] = []

    def note(self) -> None:
        """Call it before a launch: a stream that is not the call's own is held up, once."""
        stream = torch.cuda.current_stream(self.device)
        if stream != self.current and stream not in self.others:
            self.others.append(stream)
            torch.cuda._sleep(_HELD_UP)

    def joined(self) -> bool:
        """Whether what comes next on the call's own stream begins after all that the call has launched."""
        if not self.others:
            return True
        event = torch.cuda.Event()
        event.record(self.current)
        event.synchronize()
        return all(stream.query() for stream in self.others)
