"""Small modules, one or two operators each, that the synthesizer must write and get right at more than one size.

``CASES`` maps a name to a ``Case``; ``inputs(step)`` gives the arguments at another size for each step. Each family of operators
has a file, which adds its cases when it is imported.
"""

from . import (  # noqa: F401 (importing them is what fills CASES)
    asked_precision,
    attention,
    attributes,
    by_lines,
    collapsing,
    complex_numbers,
    concatenated_products,
    convolution,
    dataclasses_returned,
    float8,
    float16_convolutions,
    folded_products,
    half_convolutions,
    halves,
    indexing,
    long_rows,
    losses,
    middle_rows,
    normed_lines,
    norms,
    pointwise,
    pointwise_convolutions,
    pooled_products,
    pooling,
    products,
    recurrent,
    reductions,
    rolling,
    rounding,
    sampling,
    scans,
    scattering,
    shared_rows,
    tile_sums,
    updates,
    views,
)
from .registry import CASES, Case, made, proposed

# A kernel file imports its class from here, whichever family it is of.
globals().update({case.kind.__name__: case.kind for case in CASES.values()})

__all__ = ["CASES", "Case", "made", "proposed"]
