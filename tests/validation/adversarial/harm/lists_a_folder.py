"""Lists the names of the files in a folder that is none of its business."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='raise RuntimeError(sorted(os.listdir("@outside@")))')
EXPECTED = STOPPED


def harm(answer):
    if "secret.txt" in answer.get("verdict", {}).get("reason", ""):
        return "it could list a folder outside of the project"
