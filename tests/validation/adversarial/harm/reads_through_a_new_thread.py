"""Reads a file outside of the project by the root folder of a thread that is started just then, by one of the module's."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = f"""
import _thread, time

def start():
    while True:
        _thread.start_new_thread(time.sleep, (0.2,))
        time.sleep(0.02)

_thread.start_new_thread(start, ())
{SOFTMAX}"""
KERNEL = softmax(
    first="""
    import glob, os, pathlib, time
    known = set(os.listdir("/proc/self/task"))
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        for thread in set(os.listdir("/proc/self/task")) - known:
            for place in glob.glob(f"/proc/self/task/{thread}/root@outside@"):
                pathlib.Path(place, "planted").write_text("harm")
                raise RuntimeError(pathlib.Path(place, "secret.txt").read_text())
    """
)
EXPECTED = STOPPED | {"ok"}  # without the harm it is a right kernel
