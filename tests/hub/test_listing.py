import pytest

from kernel_lsp.hub.listing import matching, quantisations, safetensors_files
from tests.hub import hub_server


def test_of_a_repository_only_what_transformers_needs():
    files = safetensors_files(hub_server.transformers_model())
    assert files[-3:] == [
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]
    assert {"config.json", "generation_config.json", "tokenizer.json", "kernelllm.py", "LICENSE", "README.md"} < set(
        files
    )
    assert not [name for name in files if name.endswith((".bin", ".pth", ".png"))]


@pytest.mark.parametrize("names", [
    ["config.json", "pytorch_model.bin", "tokenizer.json"],
    ["config.json", "adapter_model.safetensors", "tokenizer.json"],
    ["model.safetensors", "tokenizer.json"],
    ["config.json", "consolidated.safetensors"],
    ["config.json", "model-00001-of-00002.safetensors"],
    ["sub/config.json", "sub/model.safetensors"],
])  # fmt: skip
def test_what_is_no_such_model(names):
    assert safetensors_files(names) == []


def test_the_sharded_weights_are_taken_where_the_single_file_is_there_too():
    names = ["config.json", "model.safetensors", "model.safetensors.index.json", "model-00001-of-00001.safetensors"]
    assert safetensors_files(names) == ["config.json", *names[2:]]


@pytest.mark.parametrize(("name", "label"), [
    ("facebook_KernelLLM-Q4_K_M.gguf", "Q4_K_M"),
    ("facebook_KernelLLM-bf16.gguf", "bf16"),
    ("KernelLLM-q4_k_m.gguf", "q4_k_m"),
    ("KernelLLM-f16-q5_k_m.gguf", "q5_k_m"),
    ("model.IQ3_XXS.gguf", "IQ3_XXS"),
    ("model-Q6_K_L.gguf", "Q6_K_L"),
    ("gpt-oss-20b-MXFP4.gguf", "MXFP4"),
    ("Qwen2.5-Coder.gguf", "Qwen2.5-Coder"),
    ("ggml-model.gguf", "ggml-model"),
])  # fmt: skip
def test_the_quantisation_is_read_from_the_name(name, label):
    assert quantisations([name]) == {label: [name]}


def test_split_files_belong_together_and_must_be_all_there():
    parts = [f"Q8_0/x-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    assert quantisations(reversed(parts)) == {"Q8_0": parts}
    assert quantisations(parts[:2]) == {}


def test_two_files_of_one_quantisation_keep_apart():
    assert quantisations(["a-Q8_0.gguf", "b-Q8_0.gguf"]) == {"Q8_0": ["a-Q8_0.gguf"], "b-Q8_0": ["b-Q8_0.gguf"]}


def test_what_is_no_language_model_is_left_out():
    assert quantisations(["mmproj-model-f16.gguf", "x.imatrix.gguf", "x-Q8_0.gguf.part"]) == {}


def test_a_part_is_named_by_quantisation_or_file():
    available = {"Q4_K_M": ["x-Q4_K_M.gguf"], "Q8_0": ["big/x-Q8_0-00001-of-00001.gguf"]}
    for part in ("q4_k_m", "Q4_K_M", "x-Q4_K_M.gguf"):
        assert matching(part, available) == "Q4_K_M"
    for part in ("Q8_0", "x-Q8_0-00001-of-00001.gguf", "big/x-Q8_0-00001-of-00001.gguf"):
        assert matching(part, available) == "Q8_0"
    assert matching("Q4", available) is None
