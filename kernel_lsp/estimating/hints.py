"""What torch does slowly on a GPU, each with its source.

The rules are those of torch's own choice of a way, not of times: a hint says what is taken, and that it is the slower one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import torch

from kernel_lsp import class_schema

from .convolutions import Convolution
from .operators import Operator
from .recurrent import Recurrent

_HALF = (torch.float16, torch.bfloat16)


def of(operators: Iterable[Operator], version: str, cudnn: int) -> list[class_schema.TorchHint]:
    """Each hint once. ``version``: torch's; ``cudnn``: as torch gives it, 91002 for 9.10.2, 0 where it has none."""
    found: list[class_schema.TorchHint] = []
    for one in operators:
        if one.convolution is not None:
            found += _of_convolution(one.convolution, version, cudnn)
        elif one.recurrent is not None:
            found += _of_recurrent(one.recurrent)
    return list({(hint.kind, hint.message): hint for hint in found}.values())


def _of_convolution(found: Convolution, version: str, cudnn: int) -> Iterable[class_schema.TorchHint]:
    if found.transposed and any(p >= s for p, s in zip(found.output_padding, found.stride, strict=True)):
        yield class_schema.TorchHint(
            "slow-convolution",
            "A transposed convolution whose output_padding is not below its stride does not go to cuDNN: torch runs its own slow path.",
            "aten/src/ATen/native/Convolution.cpp, ConvParams::use_cudnn",
        )
    if found.spatial == 3 and found.dtype in _HALF and _without_cudnn_3d(version, cudnn) and set(found.kernel) != {1}:
        yield class_schema.TorchHint(
            "slow-convolution",
            f"torch {version.partition('+')[0]} runs 3-D convolutions in half precision without cuDNN (slow_conv_dilated3d), 4 to 20 times as long; "
            "torch 2.10, or cuDNN 9.15, mends it.",
            "pytorch#163581, pytorch#166122, pytorch#174051",
        )
    if found.depthwise and found.last:
        yield class_schema.TorchHint(
            "depthwise-channels-last",
            "A depthwise convolution of channels_last input goes to cuDNN instead of torch's own depthwise kernel, and may take much longer; "
            "compare it with contiguous input.",
            "aten/src/ATen/native/Convolution.cpp, ConvParams::use_cudnn_depthwise; pytorch#175280",
        )


def _without_cudnn_3d(version: str, cudnn: int) -> bool:
    """Whether this torch leaves cuDNN out of 3-D convolutions in half precision: 2.9 with cuDNN 9.8 to 9.14."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) == (2, 9) and (not cudnn or 90800 <= cudnn < 91500)


def _of_recurrent(found: Recurrent) -> Iterable[class_schema.TorchHint]:
    if found.persistent or found.steps < 2 or found.kind not in ("lstm", "gru"):
        return
    yield class_schema.TorchHint(
        "recurrent-steps",
        f"{found.kind.upper()} with hidden size {found.hidden} runs outside cuDNN's persistent kernels, a launch a step "
        f"({found.steps * found.chains} steps): those serve hidden sizes up to 192, and larger ones in float16 in one layer alone.",
        "aten/src/ATen/native/cudnn/RNN.cpp, get_algo",
    )


def of_a_break(path: str, line: int | None) -> class_schema.TorchHint:
    """Of a module that torch.export cannot trace since Python decides on what tensors hold."""
    where = f" ({os.path.basename(path)}, line {line})" if line is not None else ""
    return class_schema.TorchHint(
        "graph-break",
        f"torch.compile cannot take the module whole: it decides on values in the tensors{where}, and runs eager there.",
        "torch.export's own trace of it",
    )
