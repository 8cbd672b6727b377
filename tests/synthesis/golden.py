"""The text of kernels as it was when somebody last looked at it: ``tests/synthesis/golden/``.

``make golden`` writes the files anew, ``python -m tests.synthesis.golden NAME ...`` some of them; what changes there is read before it is committed. A case
whose text has changed runs under the interpreter first: what is not right is not written. Those of ``samples/`` are called ``sample_…``, the others after their case.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from tests.synthesis import running
from tests.synthesis.cases import CASES, Case, made, proposed

#: whose torch.export they follow: others decompose an operator here and there in another way
TORCH = "2.13"
FOLDER = Path(__file__).parent / "golden"
SAMPLES = Path(__file__).parents[2] / "samples"

#: of cases that differ in one function alone, one
_LIKE_ANOTHER = (
    *("one_", "act_", "mean_", "amax_", "sum_0", "sum_1", "sum_2", "var_0", "var_1", "var_2"),
    *("padded_", "replicated", "circular", "rolled_", "repeated_", "tiled", "below_", "row_rep", "dimension", "turned"),
    *("split_windows_conv1d", "split_windows_tiny", "split_windows_huge", "split_windows_large", "split_windows_with"),
    *("windows", "pixels_un", "channels_sh", "reshaped_across_", "product_of_padded"),
    *(
        "nearest_h",
        "nearest_s",
        "nearest_u",
        "nearest_r",
        "logcumsumexp_f",
        "logcumsumexp_h",
        "logcumsumexp_i",
        "cumprod_of_",
        "numbers_in_float64",
        "transposed_to_one_channel_in",
        "bilinear_form_in",
        "split_to_a_row",
        "reshaped_to_a_row",
    ),
    *("max_pool1d_places_of_nothing_d", "multi_margin_n", "folded_windows_ap"),
    *(
        "cut_logsumexp",
        "cut_log_",
        "walked_log_",
        "cut_var_of",
        "walked_var_of",
        "cut_var_mean",
        "cut_columns",
        "cut_argmax",
        "walked_logsumexp",
        "walked_var_mean",
    ),
    *("float8_of_", "float8_read_half", "float8_not_zero", "float8_bits", "float8_arithmetic", "scaled_product_e5m2"),
    *("attention_m", "attention_ra", "attention_s", "attention_bf", "attention_causal_", "attention_of_"),
    *("float16_conv2d_huge", "float16_conv2d_tiny", "planes_huge", "planes_tiny", "planes_conv2d_h"),
    *(
        "half_conv2d_",
        "half_strided_conv",
        "half_dilated_conv",
        "half_conv3d",
        "half_grouped",
        "half_phases",
        "half_normed",
    ),
    *("rows_max_pool2d_p", "rows_avg_pool3", "rows_depthwise_l", "rows_depthwise_s", "rows_depthwise_d", "rows_of"),
    *("rows_repeated", "rows_cropped", "rows_backwards", "rows_joined", "rows_beside"),
    *("thin_mm_", "thin_linear", "thin_weight", "thin_both_"),
    *(
        "interpolated_l",
        "interpolated_t",
        "interpolated_bilinear_",
        "interpolated_bicubic_",
        "nearest_by",
        "grid_sample_n",
        "grid_sample_bilinear_b",
    ),
    *(
        "linspace_",
        "meshgrid_",
        "arange_from",
        "rows_filled",
        "places_",
        "scattered_",
        "distances_",
        "cdist_1",
        "cdist_i",
    ),
    *("pointwise_huge", "pointwise_infinity", "pointwise_nan_17", "pointwise_one_huge", "pointwise_tiny"),
    "pointwise_several_huge",
    *("folded_float16_huge", "folded_float16_least", "folded_bfloat16", "folded_least"),
    *("pointwise_conv2d_no_batch", "pointwise_conv3d", "asked_half_pointwise"),
    *("asked_tf32_nothing", "asked_half_huge", "asked_half_tiny", "asked_half_pooled", "asked_half_scaled"),
    *("collapsed_", "folded_sums_in_half", "in_tiles_"),
    *("prologue_returned", "features_returned_conv", "features_sorted"),
    *(
        "pooled_one",
        "pooled_gaps",
        "pooled_beside_phases",
        "pooled_across_rows",
        "pooled_diagonal",
        "pooled_grouped",
        "pooled_float16_huge",
        "pooled_with_nan",
        "pooled_softmax",
        "pooled_planes",
    ),
    "lines_",
    *("rows_whole_softmax", "rows_whole_l1", "rows_whole_log", "rows_whole_layer_norm_2d_many", "rows_whole_bfloat16"),
    "rows_whole_batch_norm",
    "rows_walked",
    "by_lines_",
)
_ALSO = (
    *("one_exp", "one_erf", "act_silu", "act_mish", "sum_1", "sum_02", "amax_2", "var_0", "var_12"),
    *("padded_twice", "padded_softmax", "windows_mean", "product_of_padded_sides"),
    *("attention_masked", "attention_causal_more_keys"),
    *("collapsed_linear", "collapsed_transposed", "collapsed_transposed_strided", "collapsed_transposed3d_depth"),
    *("collapsed_pool", "collapsed_pools"),
    "lines_pairs",
    *("by_lines_padded", "by_lines_pieces", "by_lines_expanded", "by_lines_phases", "by_lines_rounded"),
    *("in_tiles_group_norm", "in_tiles_float16_pool", "in_tiles_batch_norm", "in_tiles_stored"),
    *("in_tiles_phases_cut", "in_tiles_float16_phases"),
)
CHOSEN = [name for name in CASES if name in _ALSO or not name.startswith(_LIKE_ANOTHER)]
#: Make test writes and runs every second one of these. Make test-slow writes half of the rest; make test-cases writes the others, and runs the rest.
REST = CHOSEN[1::2]


def _samples() -> dict[str, Path]:
    found = {f"sample_{path.stem}": path for path in sorted(SAMPLES.glob("*.py"))}
    del found["sample_sorted_unique"]  # which cannot be written
    return found


#: as they are replayed from a CUDA graph
REPLAYED = {f"replayed_{name}": name for name in ("gated_mlp",)}
#: the ways, by their labels, of cases whose default leaves less to torch
WAYS = {
    name: "convolutions left to torch, channels last"
    for name in ("torch_channels_last", "torch_channels_last_branches", "torch_channels_last_transposed")
}
NAMES = [*_samples(), *CHOSEN, *REPLAYED]


def made_of(name: str) -> tuple[str, str]:
    """The text that the synthesizer writes with its default schedule, as little as can be left to torch, or of its replay; and its note."""
    known = REPLAYED.get(name, name)
    kind, init, arguments, origin = _sample(name) if name.startswith("sample_") else _case(known)
    try:
        torch.manual_seed(0)
        case = CASES.get(known, Case(kind, lambda _: arguments))
        module = kind(*init).train(case.training)
        if name in REPLAYED:
            found = proposed(case, module, arguments, origin)
            return next((one.source, one.note) for one in found if one.variant == "replayed as a CUDA graph")
        candidate = made(case, module, arguments, origin, WAYS.get(name, ""))
        return candidate.source, candidate.note
    finally:
        sys.modules.pop(origin, None)  # other tests have files of the samples' names


def _case(name: str) -> tuple[Any, tuple[Any, ...], list[Any], str]:
    case = CASES[name]
    return case.kind, case.init, case.inputs(0), "cases"


def _sample(name: str) -> tuple[Any, tuple[Any, ...], list[Any], str]:
    path = _samples()[name]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, torch.nn.Module)]
    kind = next(v for v in reversed(own) if v.__module__ == path.stem)
    init = getattr(module, "get_init_inputs", tuple)()
    return kind, tuple(init), list(module.get_inputs()), path.stem


def main(wanted: list[str]) -> int:
    """Write the texts, but for those of cases that are not right when they run. The number of these."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in NAMES:
            path.unlink()
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        process = running.start()
        for name in wanted or NAMES:
            text, path = made_of(name)[0], FOLDER / f"{name}.txt"
            if path.exists() and path.read_text() == text:
                continue
            # Those of the samples are validated by make demo.
            way = WAYS.get(name, "")
            outcome = running.run(process, name, Path(folder), variant=way) if name in CASES else None
            if outcome is not None and (fault := running.fault(name, outcome, default=not way)):
                faults += 1
                print(f"{name} is not written: {fault}", file=sys.stderr)
                continue
            path.write_text(text)
        running.end(process)
    return faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
