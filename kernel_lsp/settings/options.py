"""Every option, once: its name, type, default, documentation and the check of its value.

The same option is ``kernelLsp.workerPrefix`` in an editor, ``worker-prefix`` under ``[tool.kernel-lsp]`` in the nearest
pyproject.toml, and ``settings.worker_prefix`` here; one of a group is ``kernelLsp.openai.baseUrl``, ``base-url`` under
``[tool.kernel-lsp.openai]``, and ``settings.openai.base_url``.

docs/settings.md and VS Code's settings are written from here (make docs), in the sections of sections.py.
"""

# ruff: noqa: RUF009  (_option wraps dataclasses.field)

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kernel_lsp.targets import NAMED, named

#: modes of torch.compile that can be baselines
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")

Check = Callable[[Any], str]  # what is wrong with a value of the right type; "" when nothing is


def _option(default: Any, doc: str, check: Check | None = None, *, program: bool = False) -> Any:
    """A field of ``Settings`` or of a group.

    ``program`` marks what names a program or a file to write, or where secrets go: ignored in a workspace that is not
    trusted.
    """
    metadata = {"doc": doc, "check": check, "program": program}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: default.copy(), metadata=metadata)
    return field(default=default, metadata=metadata)


def _more_than_zero(value: float) -> str:
    return "" if value > 0 else "it must be more than zero"


def _zero_or_more(value: float) -> str:
    return "" if value >= 0 else "it must not be negative"


def _share(value: float) -> str:
    return "" if 0 < value <= 1 else "it must be more than 0 and at most 1"


def _known_device(value: str) -> str:
    return "" if re.fullmatch(r"auto|interpreter|cuda(:\d+)?", value) else "use auto, cuda, cuda:N or interpreter"


def _model_device(value: str) -> str:
    return "" if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value) else "use auto, cpu, cuda or cuda:N"


def _known_modes(value: list[str]) -> str:
    unknown = [mode for mode in value if mode not in COMPILE_MODES]
    return f"{unknown[0]!r} is none of {', '.join(COMPILE_MODES)}" if unknown else ""


def _known_gpu(value: str) -> str:
    return "" if named(value) is not None else f"{value!r} is none of {', '.join(NAMED)}"


def _not_empty(value: Any) -> str:
    return "" if value else "it must not be empty"


def _one_of(*values: str) -> Check:
    return lambda value: "" if value in values else f"use {', '.join(values[:-1])} or {values[-1]}"


def _web_address(value: str) -> str:
    try:
        good = urlsplit(value).scheme in ("http", "https") and bool(urlsplit(value).hostname)
    except ValueError:
        good = False
    return "" if good or not value else "it must be an address that begins with http:// or https://"


def _variable(value: str) -> str:
    named = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value) and len(value) < 60 and not value.startswith("sk_")
    return "" if not value or named else "it must be the name of an environment variable, never the key itself"


_MODEL_INTERPRETER = (
    "The Python that has {package}. Empty: the worker's (with its prefix), else the one that runs kernel-lsp."
)


@dataclass(frozen=True)
class KernelLLM:
    """``kernelllm``: a model in the Transformers format, in a process of its own."""

    model: str = _option(
        "facebook/KernelLLM",
        "A model that `kernel-lsp models pull` has fetched, or a folder with config.json, tokenizer and safetensors.",
        _not_empty,
    )
    interpreter: str = _option("", _MODEL_INTERPRETER.format(package="transformers and torch"), program=True)
    device: str = _option(
        "auto", "Where the model runs: `auto` (a GPU where there is one), `cpu`, `cuda` or `cuda:N`.", _model_device
    )
    dtype: str = _option("bf16", "The dtype of its weights: `bf16`, `fp16` or `fp32`.", _one_of("bf16", "fp16", "fp32"))
    memory: float = _option(
        0.0, "The most memory, in GB, that it may take on its device. 0: what is free there.", _zero_or_more
    )
    batch: int = _option(0, "How many samples are generated at once. 0: all of them.", _zero_or_more)
    context: int = _option(
        0, "The longest prompt and answer together, in tokens. 0: what the model was made for.", _zero_or_more
    )
    mode: str = _option(
        "completion",
        "`completion` for a model like KernelLLM, which continues one prompt; `chat` for one that converses.",
        _one_of("completion", "chat"),
    )
    idle_seconds: float = _option(600.0, "The model is unloaded after so long without a request.", _more_than_zero)


@dataclass(frozen=True)
class LlamaCpp:
    """``llama-cpp``: a GGUF file through llama-cpp-python, in a process of its own."""

    model: str = _option(
        "",
        "A GGUF file, or the name of one that `kernel-lsp models pull` has fetched. Empty: KernelLLM, where it was fetched as GGUF.",
    )
    interpreter: str = _option("", _MODEL_INTERPRETER.format(package="llama-cpp-python"), program=True)
    gpu_layers: int = _option(-1, "How many layers run on the GPU, if llama.cpp was built for one. -1: all.")
    context: int = _option(8192, "The longest prompt and answer together, in tokens.", _more_than_zero)
    threads: int = _option(0, "CPU threads. 0: as many as llama.cpp thinks right.", _zero_or_more)
    mode: str = _option(
        "completion",
        "`completion` for a model like KernelLLM, which continues one prompt; `chat` for one that converses.",
        _one_of("completion", "chat"),
    )
    idle_seconds: float = _option(600.0, "The model is unloaded after so long without a request.", _more_than_zero)


@dataclass(frozen=True)
class OpenAI:
    """``openai``: any OpenAI-compatible server (vLLM, llama.cpp's, a hosted one)."""

    base_url: str = _option(
        "",
        "The server's address, with the path that its API begins at: `http://127.0.0.1:8000/v1`. Empty: OpenAI's own, if `model` is set and the key is there.",
        _web_address,
        program=True,
    )
    model: str = _option("", "The model's name there. Empty: the only one that the server has.")
    api_key_env: str = _option(
        "OPENAI_API_KEY",
        "The name of the environment variable that holds the key. The key itself is never stored, logged or shown.",
        _variable,
        program=True,
    )
    mode: str = _option(
        "auto",
        "`completion` for a model like KernelLLM, `chat` for one that converses. `auto`: completion if its name says KernelLLM.",
        _one_of("auto", "completion", "chat"),
    )
    timeout: float = _option(
        120.0, "Seconds without a sign of life after which a request counts as failed.", _more_than_zero
    )
    retries: int = _option(
        5, "How often a request is made again after 429, 5xx, a lost connection or half an answer.", _zero_or_more
    )
    parallel: int = _option(4, "How many requests are under way at once.", _more_than_zero)
    context: int = _option(
        0,
        "The longest prompt and answer together, in tokens. 0: what the server says, else not checked.",
        _zero_or_more,
    )


@dataclass(frozen=True)
class Settings:
    """The options in force for one source file. ``root`` is the folder of the nearest pyproject.toml, if there is one."""

    interpreter: str = _option(
        "",
        "The Python that has torch and triton and can import your modules. Empty: the Python that runs kernel-lsp. "
        "A relative path is relative to the folder of pyproject.toml; `~` is expanded.",
        program=True,
    )
    worker_prefix: list[str] = _option(
        [],
        'A command put in front of the interpreter, one argument an item: `["ssh", "gpu-box"]`, '
        '`["srun", "--gres=gpu:1"]`, `["docker", "exec", "-i", "box"]`. What it starts must see the same files under the '
        "same paths, and pass standard input and output through.",
        program=True,
    )
    kernel_folder: str = _option("kernels", "The folder for kernel files, relative to the source file.", _not_empty)
    generators: list[str] = _option(
        [],
        "Where candidates come from, in this order: `recall` (validated before for the same graph), `synthesizer` (by rule), "
        "`kernelllm` (a model through transformers), `llama-cpp` (a GGUF file), `openai` (an OpenAI-compatible server). Empty: every one that can run here.",
    )
    samples: int = _option(10, "At most this many candidates from one generator.", _more_than_zero)
    temperature: float = _option(
        0.6, "Sampling temperature of language models; 0 takes the likeliest token.", _zero_or_more
    )
    top_p: float = _option(
        0.95, "Language models draw from the likeliest tokens that have this probability together.", _share
    )
    max_tokens: int = _option(2048, "The longest answer of a language model, in tokens.", _more_than_zero)
    seed: int = _option(0, "Sample number i of a language model is drawn with seed + i.", _zero_or_more)
    rounds: int = _option(
        3, "How often a model that converses may repair or speed up a candidate. 0: not at all.", _zero_or_more
    )
    seconds: float = _option(300.0, "Time budget of one job, in seconds.", _more_than_zero)
    device: str = _option(
        "auto",
        "Where kernels are validated: `auto` (a CUDA GPU where there is one, else Triton's interpreter), `cuda`, `cuda:N` or "
        "`interpreter`.",
        _known_device,
    )
    baselines: list[str] = _option(
        ["default"],
        "The modes of torch.compile that a kernel is timed against: `default`, `reduce-overhead`, `max-autotune`. "
        "Empty: eager alone.",
        _known_modes,
    )
    validate_on_save: bool = _option(
        True,
        "Validate the kernel of a class again when a save, or a change outside the editor, has changed what the class computes.",
    )
    revalidate: str = _option(
        "save",
        "When kernels are validated again without being asked for: `save` (after a save that changed what a class "
        "computes), `idle` (also after `validateWhenIdle` seconds without an edit or a job, where an upgrade or another GPU left "
        "a verdict from before) or `never`. A verdict from before is shown as such, with the action to validate the kernel.",
        _one_of("save", "idle", "never"),
    )
    store: str = _option(
        "",
        "The file that keeps what was validated: a path, relative to the folder of pyproject.toml, or `none` to keep "
        "nothing. Empty: one in your data folder. The environment variable `KERNEL_LSP_STORE` wins over it.",
        program=True,
    )
    regression_threshold: float = _option(
        5.0,
        "Percent by which a kernel has to be slower than the fastest one before it to count as regressed. Both are timed in "
        "turn in one run; the whole confidence interval of their ratio has to lie beyond.",
        _zero_or_more,
    )
    validate_when_idle: float = _option(
        5.0,
        "Seconds without an edit or a job after which an editor's server makes the checks that the last validation of a "
        "class left out. Any edit, save or command ends that. 0: never.",
        _zero_or_more,
    )
    pause_on_battery: bool = _option(
        True,
        "On battery, leave out background validations: those when idle, and those of files that changed outside the editor.",
    )
    pause_while_gpu_busy: bool = _option(
        True,
        "Leave the same out while other programs keep the GPU busy, as a training run does. Times taken beside "
        "other work are marked as such, and tell of no regression.",
    )
    thorough: bool = _option(
        False,
        "Make every check, whatever it takes; else those that are not essential are left out when time is short, and "
        "counted as skipped.",
    )
    bounds: str = _option(
        "trust",
        "What becomes of an index out of range, for which eager raises an error (embedding, gather, index_select, the "
        "targets of a loss). `trust`: the kernel reads what lies there. `check`: the synthesizer's kernel files look at the "
        "indices before the launch and raise IndexError, which takes a reduction over them and a synchronisation with the "
        "GPU in every call; a kernel that does not raise there is wrong.",
        _one_of("trust", "check"),
    )
    precision: str = _option(
        "strict",
        "How exact products and convolutions of float32 tensors are. `strict`: as exact as float32, or as torch where torch "
        "itself rounds. `tf32`: operands may be rounded to TF32, ten bits of mantissa. `half`: to float16 as well, where its "
        "range suffices; sums stay in float32. A kernel file names another precision than `strict` in its header, and is "
        "validated under it from then on.",
        _one_of("strict", "tf32", "half"),
    )
    keep_packed_weights: bool = _option(
        False,
        "Keep what the synthesizer's kernels compute of parameters and buffers alone (float16 planes, packed convolution weights) from call "
        "to call, in memory beside the weights; it is computed anew after a weight was replaced or changed. A change that does not move the "
        "tensor's version counter, such as one through `.data` or by a fused optimizer, is not noticed until the module's `forget_packed_weights()` is called.",
    )
    valid_severity: str = _option(
        "hint",
        "How an editor shows that a kernel is correct, and how fast: the diagnostics `kernel-valid` and `kernel-slower`. `hint`: no squiggle "
        "and no entry among the problems of VS Code; Neovim shows it at the end of the line. `information`: as one of the problems. `off`: not at all.",
        _one_of("hint", "information", "off"),
    )
    inlay_hints: bool = _option(False, "Show the speedup after the class name.")
    estimate_above: float = _option(
        1.2,
        "Above a class without a kernel, show how many times faster than eager one is estimated to be, where that is at least so many "
        "times. The estimate is made after `validateWhenIdle` seconds of rest, never where that is 0, and without a GPU; the class is imported for it. 0: no estimates.",
        _zero_or_more,
    )
    estimate_gpu: str = _option(
        "H100",
        "The GPU that estimates are for where there is none here: " + ", ".join(f"`{name}`" for name in NAMED) + ".",
        _known_gpu,
    )
    torch_hints: bool = _option(
        False,
        "Say of a class without a kernel what torch does slowly on a GPU: a convolution that cuDNN does not take, a depthwise one of "
        "channels_last input, recurrent layers with a launch a step, and a module that torch.compile cannot take whole.",
    )
    overwrite: bool = _option(False, "Overwrite a kernel file that was edited since kernel-lsp wrote it.")

    kernelllm: KernelLLM = field(default_factory=KernelLLM, metadata={"group": KernelLLM})
    llama_cpp: LlamaCpp = field(default_factory=LlamaCpp, metadata={"group": LlamaCpp})
    openai: OpenAI = field(default_factory=OpenAI, metadata={"group": OpenAI})

    # Tables of pyproject.toml and where it lies; not options of their own.
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    root: Path | None = None

    def inputs_for(self, path: Path, class_name: str) -> dict[str, Any] | None:
        """The table ``[tool.kernel-lsp.inputs."<relative file>::<Class>"]`` of a class, or None."""
        if self.root is None or not self.inputs:
            return None
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return self.inputs.get(f"{relative}::{class_name}")

    def interpreter_command(self) -> list[str]:
        """The worker's command up to and with the interpreter: ``[*prefix, interpreter]``.

        Behind a prefix the interpreter is a name on another machine (or in a container) and is passed as it stands.
        """
        if self.worker_prefix:
            return [*self.worker_prefix, self.interpreter or sys.executable]
        return [self.found(self.interpreter)]

    def model_commands(self, interpreter: str) -> list[list[str]]:
        """The commands to try for a model host, the best first, each up to and with the interpreter."""
        if interpreter:
            return [[self.found(interpreter)]]
        commands = [self.interpreter_command()]
        return commands if commands == [[sys.executable]] else [*commands, [sys.executable]]

    def found(self, interpreter: str) -> str:
        """The interpreter that a setting means on this machine; an empty one means the one that runs this."""
        if not interpreter:
            return sys.executable
        chosen = os.path.expanduser(interpreter)
        if os.sep not in chosen and "/" not in chosen:
            return shutil.which(chosen) or chosen
        # Not resolved any further: a virtual environment's python is a link whose own place is what matters.
        return os.path.abspath(os.path.join(self.root or Path.cwd(), chosen))


class Option(NamedTuple):
    """An option with its place: ``group`` is the name of a group's field in ``Settings``, or ""."""

    group: str
    field: dataclasses.Field[Any]

    @property
    def name(self) -> str:
        """As in ``Settings``, with the group before a dot."""
        return f"{self.group}.{self.field.name}" if self.group else self.field.name


def options() -> Iterator[Option]:
    """Every option."""
    for outer in dataclasses.fields(Settings):
        if "doc" in outer.metadata:
            yield Option("", outer)
    for group, kind in groups().items():
        for inner in dataclasses.fields(kind):
            yield Option(group, inner)


def groups() -> dict[str, Any]:
    """The groups of options by the name of their field: ``openai`` → ``OpenAI``."""
    return {f.name: f.metadata["group"] for f in dataclasses.fields(Settings) if "group" in f.metadata}


def camel(name: str) -> str:
    """The editor's spelling: ``worker_prefix`` → ``workerPrefix``, ``openai.base_url`` → ``openai.baseUrl``."""

    def one(part: str) -> str:
        head, *rest = part.split("_")
        return head + "".join(word.capitalize() for word in rest)

    return ".".join(one(part) for part in name.split("."))


def kebab(name: str) -> str:
    """The spelling in pyproject.toml and of command line options: ``worker_prefix`` → ``worker-prefix``."""
    return name.replace("_", "-")
