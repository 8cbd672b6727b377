"""Reads a file outside of the project by the root folder of a thread that the module started when it was imported."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = f"""
import threading, time

threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
{SOFTMAX}"""
KERNEL = softmax(
    first="""
    import glob, pathlib
    for place in glob.glob("/proc/self/task/*/root@outside@"):
        pathlib.Path(place, "planted").write_text("harm")
        raise RuntimeError(pathlib.Path(place, "secret.txt").read_text())
    """
)
EXPECTED = STOPPED | {"ok"}  # without the harm it is a right kernel
