"""Replaces the class torch.cuda.Event after it was imported, by one that halves what it measures."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    class Event(torch.cuda.Event):
        def elapsed_time(self, end):
            return super().elapsed_time(end) / 2
    """,
    first="torch.cuda.Event = torch.cuda.streams.Event = Event",
)
EXPECTED = {"cheating", "rejected"}
