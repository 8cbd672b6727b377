import shutil

import pytest

from kernel_lsp.errors import ModelNameInvalid, TooLittleDisk, TooLittleMemory
from kernel_lsp.hub.catalogue import CATALOGUE, needed_bytes, wanted
from kernel_lsp.hub.choosing import check_disk, gigabytes, propose
from kernel_lsp.hub.memory import Gpu, Memory, fits

GB = 10**9
GIB = 1 << 30
SIZES = {q.name: q.bytes for known in CATALOGUE for q in known.quantisations}


def memory(ram: float, *gpus: float) -> Memory:
    return Memory(
        int(ram * GIB), tuple(Gpu(f"GPU {n}", int(size * GIB), int(size * GIB)) for n, size in enumerate(gpus))
    )


@pytest.mark.parametrize(("there", "taken", "why"), [
    (memory(64, 80), "Q8_0", "GPU 0"),  # bf16 would fit, and is no better
    (memory(64, 12), "Q8_0", "12.9 GB of GPU 0"),
    (memory(64, 10), "Q6_K", "GPU 0"),
    (memory(64, 8), "Q5_K_M", "GPU 0"),
    (memory(64, 4, 8), "Q5_K_M", "GPU 1"),
    (memory(64, 4), "Q4_K_M", "none fits into the 4.3 GB of GPU 0"),
    (memory(512), "Q4_K_M", "no NVIDIA GPU"),
    (memory(8), "Q4_K_M", "CPU"),
])  # fmt: skip
def test_the_quantisation_that_suits_the_memory(there, taken, why):
    choice = propose(SIZES, there, "kernelllm-gguf")
    assert choice.quantisation == taken
    assert why in choice.why


def test_other_quantisations_are_ranked_by_size():
    assert propose({"IQ2_M": 3 * GB, "q3_k_s": 4 * GB}, memory(64, 24), "a/b").quantisation == "q3_k_s"
    assert propose({"only": 3 * GB}, memory(64), "a/b").quantisation == "only"
    assert propose({"q8_0": 8 * GB, "q4_k_m": 4 * GB}, memory(64), "a/b").quantisation == "q4_k_m"


def test_too_little_memory_says_what_is_needed_and_what_is_there():
    with pytest.raises(
        TooLittleMemory, match=r"kernelllm-gguf needs about 6\.7 GB .* 4\.3 GB of RAM and 2\.1 GB on GPU 0.*--force"
    ):
        propose(SIZES, memory(4, 2), "kernelllm-gguf")


def test_kernelllm_in_bf16_fits_a_gpu_of_24_gb_and_not_one_of_16():
    needed = needed_bytes(next(known.bytes for known in CATALOGUE if known.name == "kernelllm"))
    assert fits(needed, memory(8, 24)) == "gpu"
    assert fits(needed, memory(64, 16)) == "ram"
    assert fits(needed, memory(16, 16)) == "no"


def test_disk_space_is_that_of_the_disk_the_folder_will_be_on(tmp_path):
    folder = tmp_path / "not" / "there" / "yet"
    free = shutil.disk_usage(tmp_path).free
    check_disk("a/b", free // 2, folder)
    with pytest.raises(TooLittleDisk, match=rf"a/b still needs {gigabytes(free * 2)}.*{folder} has .* left"):
        check_disk("a/b", free * 2, folder)


def test_sizes_in_words():
    assert [gigabytes(n) for n in (0, 999, 20_000, 4_900_000, 4_920_000_000)] == [
        "0 bytes",
        "999 bytes",
        "20 kB",
        "5 MB",
        "4.9 GB",
    ]


def test_names():
    assert wanted("kernelllm").repository == "facebook/KernelLLM"
    assert wanted("KernelLLM").kind == "safetensors"
    assert wanted("kernelllm-gguf:Q4_K_M").part == "Q4_K_M"
    assert wanted("kernelllm-gguf").repositories == ("bartowski/facebook_KernelLLM-GGUF", "Mungert/KernelLLM-GGUF")
    assert wanted("Mungert/KernelLLM-GGUF").repositories == ("Mungert/KernelLLM-GGUF",)
    other = wanted("org/repo:sub/file-00001-of-00002.gguf")
    assert (other.repository, other.part, other.kind) == ("org/repo", "sub/file-00001-of-00002.gguf", "gguf")
    assert wanted("org/repo").kind is None


@pytest.mark.parametrize(
    "name", ["", "x", "a/b/c", "a/..", "../b", "a--b/c", "a/b:", "/a/b", "a b/c", "https://x/y", "a/" + "b" * 99]
)
def test_what_is_no_name(name):
    with pytest.raises(ModelNameInvalid, match="kernelllm-gguf"):
        wanted(name)
