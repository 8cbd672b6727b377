"""The sections in which docs/settings.md and VS Code show the options, in the order in which users need them.

A user without language models sees the first: what comes after it is for special cases, or for models.
"""

from __future__ import annotations

from kernel_lsp.settings.options import Option, options

#: By title: names of options; the name of a group stands for all of its options.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Kernels": (
        "interpreter",
        "device",
        "kernel_folder",
        "overwrite",
        "precision",
        "seconds",
        "generators",
        "validate_on_save",
        "valid_severity",
        "inlay_hints",
    ),
    "Advanced": (
        "keep_packed_weights",
        "bounds",
        "thorough",
        "baselines",
        "revalidate",
        "validate_when_idle",
        "pause_while_gpu_busy",
        "pause_on_battery",
        "estimate_above",
        "estimate_gpu",
        "torch_hints",
        "worker_prefix",
        "store",
        "regression_threshold",
    ),
    "Language models": ("samples", "temperature", "top_p", "max_tokens", "seed", "rounds"),
    "Language models: transformers": ("kernelllm",),
    "Language models: llama.cpp": ("llama_cpp",),
    "Language models: OpenAI-compatible servers": ("openai",),
}


def sections() -> dict[str, list[Option]]:
    """The options of each section, by its title."""
    found = list(options())
    return {
        title: [option for name in names for option in found if name in (option.name, option.group)]
        for title, names in SECTIONS.items()
    }
