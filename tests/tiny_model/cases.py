"""What the tiny model knows: for each class the answers in ``answers/``, with how often it is to give them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Case:
    """A class and what is answered to it."""

    file: str  # from the root of the repository
    class_name: str
    answers: dict[str, float]  # name in ``answers/`` → probability

    @property
    def path(self) -> Path:
        return ROOT / self.file

    @property
    def greedy(self) -> str:
        """The answer at temperature 0: the likeliest."""
        return text(max(self.answers, key=lambda name: self.answers[name]))


def text(name: str) -> str:
    """An answer, as the model is to write it."""
    return (HERE / "answers" / f"{name}.txt").read_text("utf-8")


_MODULES = "tests/tiny_model/modules.py"
#: The first of several is a little likelier, so that greedy decoding does not hang on the last digit.
_SEVERAL = {"squared_relu_1": 0.34, "squared_relu_2": 0.22, "squared_relu_3": 0.22, "squared_relu_4": 0.22}

CASES = {
    case.class_name: case
    for case in [
        Case("samples/softmax.py", "TemperatureSoftmax", {"temperature_softmax": 1.0}),
        Case("samples/rms_norm.py", "RMSNorm", {"rms_norm": 1.0}),
        Case("samples/swiglu.py", "SwiGLU", {"swi_glu": 1.0}),
        Case("samples/middle_reduction.py", "MeanPool", {"mean_pool": 1.0}),
        Case(_MODULES, "Leaky", {"leaky": 1.0}),  # wrong: the slope is 0.01, not 0.2
        Case(_MODULES, "Clip", {"clip": 1.0}),  # does not compile: 1000 is no power of two
        Case(_MODULES, "SoftSign", {"soft_sign": 1.0}),  # a parenthesis is not closed
        Case(_MODULES, "Wave", {"wave": 1.0}),  # prose
        Case(_MODULES, "SquaredReLU", _SEVERAL),  # right, right in another way, wrong, prose
    ]
}
