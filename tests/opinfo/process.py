"""Validates samples of the operators that it is told, one a line; prints a JSON object a line for each sample.

``{"name": "add", "variant": "", "most": 8}`` in; ``{"name", "index", "kind", "detail", "inputs", "seconds"}`` out, then
``{"name", "over": true}``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
os.environ["KERNEL_LSP_RAISE_FAULTS"] = "1"

import torch

from kernel_lsp.validation.interpreter import repair

from .database import operators
from .sample import CRASH, Outcome, sample_of, validate

SECONDS = 300  # for one sample; Triton's interpreter takes milliseconds for each program of a launch


def dtype_of(info: Any) -> torch.dtype | None:
    """float32 where the operator takes it, else int64, else bool."""
    known = info.supported_dtypes("cpu")
    return next((d for d in (torch.float32, torch.int64, torch.bool) if d in known), None)


def chosen(samples: list[Any], most: int) -> list[tuple[int, Any]]:
    """At most ``most`` samples, from the first to the last."""
    if len(samples) <= most:
        return list(enumerate(samples))
    return [(i * (len(samples) - 1) // (most - 1), samples[i * (len(samples) - 1) // (most - 1)]) for i in range(most)]


class _TooLong(BaseException):
    pass


def _alarm(*_: Any) -> None:
    raise _TooLong


def outcomes(info: Any, most: int) -> Any:
    dtype = dtype_of(info)
    if dtype is None:
        return
    torch.manual_seed(0)
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=False))
    except Exception as error:
        yield 0, Outcome("eager", f"no samples: {error}"[:160]), 0.0
        return
    for index, one in chosen(samples, most):
        began = time.monotonic()
        signal.alarm(SECONDS)
        try:
            outcome = validate(sample_of(info.op, one, info.name))
        except _TooLong:
            outcome = Outcome(CRASH, f"took more than {SECONDS} s")
        except Exception as error:
            outcome = Outcome(CRASH, f"{type(error).__name__}: {error}"[:160])
        finally:
            signal.alarm(0)
        yield index, outcome, time.monotonic() - began


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _alarm)
    repair()
    infos = operators()
    # Libraries below Python print as well (LAPACK names an argument that it refuses): that goes where errors go.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        info = infos[asked["name"], asked["variant"]]
        for index, outcome, seconds in outcomes(info, asked["most"]):
            print(
                json.dumps({**asked, "index": index, **vars(outcome), "seconds": round(seconds, 2)}),
                file=answers,
                flush=True,
            )
        print(json.dumps({**asked, "over": True}), file=answers, flush=True)


if __name__ == "__main__":
    main()
