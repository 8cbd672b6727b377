from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernel_lsp
from kernel_lsp.naming import snake_case
from kernel_lsp.synthesis.graph.names import Names, of_kernel
from kernel_lsp.synthesis.printing.names import class_alias, function_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RMSNorm", "rms_norm"),
        ("LayerNormGELU", "layer_norm_gelu"),
        ("SwiGLU", "swiglu"),
        ("ConvNeXtBlock", "conv_next_block"),
        ("ConvNeXtV2", "conv_next_v2"),
        ("ResNeXt", "res_next"),
        ("DenseNet", "dense_net"),
        ("MobileViT", "mobile_vit"),
        ("ViTBlock", "vit_block"),
        ("MoE", "moe"),
        ("MoEMLP", "moe_mlp"),
        ("SparseMoELayer", "sparse_moe_layer"),
        ("DiTBlock", "dit_block"),
        ("FiLM", "film"),
        ("GEGLU", "geglu"),
        ("LSTM", "lstm"),
        ("BiLSTM", "bi_lstm"),
        ("ToRGB", "to_rgb"),
        ("ToQ", "to_q"),
        ("AtB", "at_b"),
        ("IfA", "if_a"),
        ("MyNN", "my_nn"),
        ("QKVProjection", "qkv_projection"),
        ("NextToken", "next_token"),
        ("GroupNormSiLU", "group_norm_silu"),
        ("LinearReLU", "linear_relu"),
        ("LlamaMLP", "llama_mlp"),
        ("Outer.Inner", "outer_inner"),
        ("HTTPServer2D", "http_server2_d"),
        ("Softmax", "softmax"),
        ("already_snake", "already_snake"),
        ("_Private", "private"),
    ],
)
def test_snake(name: str, expected: str) -> None:
    assert snake_case(name) == expected
    assert snake_case(expected) == expected


def test_a_name_is_handed_out_once() -> None:
    names = Names(["x"])
    assert [names.fresh("x"), names.fresh("x"), names.fresh("x1"), names.fresh("x1")] == ["x2", "x3", "x1", "x1_2"]


@pytest.mark.parametrize("wanted", ["tl", "rows", "lambda", "2d", "a.b-c", "", "for"])
def test_a_name_is_an_identifier_and_no_word_of_the_templates(wanted: str) -> None:
    name = Names().fresh(wanted)
    assert name.isidentifier() and name not in ("tl", "rows", "lambda", "for")


def test_no_value_has_a_name_that_a_template_uses() -> None:
    folder = Path(kernel_lsp.__file__).parent / "synthesis"
    used = {name for path in folder.rglob("*.py") for name in re.findall(r'fixed\("(\w+)"\)', path.read_text("utf-8"))}
    assert len(used) > 30
    assert [name for name in sorted(used) if Names().fresh(name) == name] == []


@pytest.mark.parametrize(
    ("wanted", "taken", "expected"),
    [
        ("rms_norm", ["x"], "rms_norm"),
        ("mask", ["x", "mask"], "mask_forward"),
        ("x", ["x"], "x_forward"),
        ("mask", ["mask", "mask_forward"], "mask_forward2"),
        ("print", ["x"], "print_forward"),
        ("super", ["x"], "super_forward"),
        ("lambda", ["x"], "lambda_forward"),
        ("triton", ["x"], "triton_forward"),
    ],
)
def test_the_host_function_hides_nothing_and_is_not_hidden(wanted: str, taken: list[str], expected: str) -> None:
    assert function_name(wanted, taken) == expected


def test_a_class_does_not_take_the_place_of_an_import() -> None:
    assert (class_alias("RMSNorm"), class_alias("triton")) == ("RMSNorm", "triton_module")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("rms_norm_kernel", "rms_norm_kernel"),
        ("größe_kernel", "grosse_kernel"),
        ("é模_kernel", "e_kernel"),
        ("注意_kernel", "module_kernel"),
        ("模2_kernel", "v_2_kernel"),
        ("kernel", "kernel"),
    ],
)
def test_kernels_have_names_that_ptx_allows(wanted: str, expected: str) -> None:
    assert of_kernel(wanted) == expected
