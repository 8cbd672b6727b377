"""A GGUF file through llama-cpp-python: the prompt evaluated once, then one sample after the other from there."""

from __future__ import annotations

import codecs
import ctypes
import logging
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_lsp import child_processes, errors
from kernel_lsp.modelhost import limits, memory
from kernel_lsp.modelhost.request import Request
from kernel_lsp.modelhost.streams import Streams

log = logging.getLogger("kernel_lsp.modelhost")

REQUIREMENT = "llama-cpp-python"
#: llama.cpp's numbers for what a file mostly holds → its names (general.file_type)
FILE_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 7: "Q8_0", 12: "Q3_K_M", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S"}
FILE_TYPES |= {17: "Q5_K_M", 18: "Q6_K", 32: "BF16"}
_OUT_OF_MEMORY = re.compile(
    r"out of memory|(failed|unable) to allocate|cudaMalloc|not enough memory|bad alloc", re.IGNORECASE
)
_RANDOM_SEED = 0xFFFFFFFF  # llama.cpp's sign for "draw one"


def load(params: dict[str, Any], request: Request) -> GgufModel:
    """Load a GGUF file.

    Raises:
        ModelPackageMissing: llama-cpp-python is missing or does not work.
        ModelMissing, ModelDamaged: the file is not there, or is no GGUF file that llama.cpp reads.
        ModelTooLarge: it does not fit into memory.
    """
    try:
        import llama_cpp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:  # the latter two: its shared library does not load
        missing = isinstance(error, ImportError) and error.name == "llama_cpp"
        raise errors.ModelPackageMissing(
            interpreter=sys.executable,
            package=REQUIREMENT if missing else "a working llama-cpp-python",
            detail="" if missing else f" ({error})",
            command=f"{sys.executable} -m pip install {REQUIREMENT}",
        ) from error
    request.check()
    return GgufModel(params, request)


class _Log:
    """llama.cpp's log: kept for the reason of a failure, shown if wanted. The callback must outlive the library's use of it."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=200)
        self.verbose = False

    def line(self, level: int, text: bytes, _: Any) -> None:
        words = text.decode("utf-8", "replace")
        self.lines.append(words.strip())
        if self.verbose:
            print(words, end="", file=sys.stderr, flush=True)

    def reason(self) -> str:
        """The line that says most about why loading failed."""
        telling = [
            line for line in self.lines if re.search(r"fail|error|invalid|corrupt|bad|unable", line, re.IGNORECASE)
        ]
        return (telling[0] if telling else "llama.cpp does not say why").split(": ", 1)[-1].rstrip(".")


class GgufModel:
    """A GGUF model and its context. ``about`` is the answer to ``load``."""

    def __init__(self, params: dict[str, Any], request: Request) -> None:
        import llama_cpp

        began = time.monotonic()
        self.path = Path(str(params["model"])).expanduser()
        self.size = self._size()
        gpu_layers = int(params.get("gpu_layers", -1))
        on_gpu = bool(gpu_layers and llama_cpp.llama_supports_gpu_offload())
        self.place = "the GPU" if on_gpu else "the CPU"
        self.limit = int(params.get("memory") or 0) or None
        if not on_gpu and self.size > self._available():
            raise self._too_large(
                limits.in_words(self.size), "", limits.proposal(self._parameters(), self._available())
            )
        self.log = _Log()
        self.log.verbose = bool(params.get("verbose"))
        self.log_callback = llama_cpp.llama_log_callback(self.log.line)
        llama_cpp.llama_log_set(self.log_callback, ctypes.c_void_p(0))
        threads = int(params.get("threads") or 0) or child_processes.processors()
        request.progress("loading weights", 0.0)
        try:
            self.llama = llama_cpp.Llama(
                str(self.path),
                n_gpu_layers=gpu_layers,
                n_ctx=int(params.get("context") or 0),
                n_threads=threads,
                n_threads_batch=threads,
                verbose=self.log.verbose,
            )
        except (ValueError, RuntimeError, MemoryError) as error:
            raise self._failure(error) from error
        self.lib = llama_cpp
        self.vocab = llama_cpp.llama_model_get_vocab(self.llama.model)
        self.cancelled = lambda: False
        # Asked between the operations of an evaluation, so that a long prompt can be stopped, too.
        self.abort_callback = llama_cpp.ggml_abort_callback(lambda _: self.cancelled())
        llama_cpp.llama_set_abort_callback(self.llama.ctx, self.abort_callback, ctypes.c_void_p(0))
        self.template = self.llama.metadata.get("tokenizer.chat_template")
        self.evaluated: list[int] = []  # the prompt whose keys and values are in the context
        kind = self.llama.metadata.get("general.file_type", "")
        self.about: dict[str, Any] = {
            "name": self.path.name,
            "context": self.llama.n_ctx(),
            "device": ("metal" if sys.platform == "darwin" else "cuda:0") if on_gpu else "cpu",
            "dtype": FILE_TYPES.get(int(kind), "") if kind.isdigit() else "",
            "bytes": self.size,
            "seconds": round(time.monotonic() - began, 3),
            "chat": bool(self.template),
        }

    def _size(self) -> int:
        """The file's size, after a look at its first bytes.

        Raises:
            ModelMissing: there is no such file.
            ModelDamaged: it cannot be read, or does not begin as a GGUF file.
        """
        try:
            with self.path.open("rb") as file:
                magic = file.read(4)
            size = self.path.stat().st_size
        except FileNotFoundError:
            command = limits.pull(str(self.path))
            raise errors.ModelMissing(
                model=str(self.path), detail=" (there is no such file)", command=command
            ) from None
        except OSError as error:
            raise self._damaged(error.strerror or str(error)) from error
        if magic != b"GGUF":
            raise self._damaged("it is not a GGUF file")
        return size

    def _damaged(self, detail: str) -> errors.ModelDamaged:
        return errors.ModelDamaged(path=str(self.path), detail=detail, command=limits.pull(str(self.path)))

    def _available(self) -> int:
        free = memory.free_in_main_memory()
        return free if self.limit is None else min(free, self.limit)

    def _parameters(self) -> int:
        """About how many parameters the file holds, by its size and the quantisation in its name."""
        kind = next((size for name, size in limits.GGUF.items() if name.lower() in self.path.name.lower()), 2.0)
        return int(self.size / kind)

    def _too_large(self, needed: str, detail: str, proposal: str) -> errors.ModelTooLarge:
        available = limits.in_words(self._available()) if self.place == "the CPU" else "less"
        return errors.ModelTooLarge(
            model=self.path.name,
            needed=needed,
            device=self.place,
            available=available,
            detail=detail,
            proposal=proposal,
        )

    def _failure(self, error: Exception) -> errors.UserError:
        """What llama.cpp's log says of a failed load."""
        text = "\n".join([*self.log.lines, str(error)])
        no_memory = isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text)
        if not no_memory and "llama_context" not in str(error):
            return self._damaged(self.log.reason())
        fewer = "put fewer layers on the GPU (kernelLsp.llamaCpp.gpuLayers), " if self.place == "the GPU" else ""
        proposal = (
            f"Shorten the context (kernelLsp.llamaCpp.context), {fewer}or use a smaller quantisation of the model."
        )
        return self._too_large(f"more than {limits.in_words(self.size)}", f" ({self.log.reason()})", proposal)

    def tokenize(self, prompt: str) -> list[int]:
        """The ids that reach the model: exactly one begin-of-text, if the model wants one."""
        beginning = self.llama.token_bos()
        wanted = beginning >= 0 and bool(self.lib.llama_vocab_get_add_bos(self.vocab))
        literal = self._piece(beginning, special=True).decode("utf-8", "replace") if beginning >= 0 else None
        plain = limits.without_beginning(prompt, literal)
        ids: list[int] = self.llama.tokenize(plain.encode(), add_bos=False, special=True) if plain else []
        return [beginning, *ids] if wanted else ids

    def _prompt(self, params: dict[str, Any]) -> list[int]:
        if params.get("messages") is None:
            return self.tokenize(params["prompt"])
        if not self.template:
            detail = "its file has no chat template, so it takes prompts only"
            raise errors.ModelNotSupported(model=self.path.name, detail=detail)
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        beginning, end = self.llama.token_bos(), self.llama.token_eos()
        render = Jinja2ChatFormatter(
            self.template,
            eos_token=self._piece(end, special=True).decode("utf-8", "replace"),
            bos_token=self._piece(beginning, special=True).decode("utf-8", "replace") if beginning >= 0 else "",
        )
        return self.tokenize(render(messages=params["messages"]).prompt)

    def generate(self, params: dict[str, Any], request: Request) -> dict[str, Any]:
        """Answer a ``generate`` request.

        Raises:
            PromptTooLong: the context leaves too few tokens for an answer.
            Cancelled: the request was cancelled.
            InternalError: llama.cpp failed.
            UserError: the prompt is empty.
        """
        prompt = self._prompt(params)
        if not prompt:
            raise errors.UserError(message="The prompt is empty.")
        samples, seed = int(params.get("samples") or 1), int(params.get("seed") or 0)
        most = limits.room(len(prompt), int(params.get("max_tokens") or 2048), self.about["context"])
        streams = Streams(request, samples, seed)
        self.cancelled = request.cancelled.is_set
        try:
            for sample in range(samples):
                self._sample(prompt, sample, most, params, streams, request)
        except RuntimeError as error:
            self.llama.reset()
            self.evaluated = []
            request.check()  # an evaluation that was aborted
            raise errors.InternalError(detail=f"llama.cpp failed: {error}") from error
        finally:
            self.cancelled = lambda: False
        return streams.result(len(prompt))

    def _sample(
        self, prompt: list[int], sample: int, most: int, params: dict[str, Any], streams: Streams, request: Request
    ) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        parts: list[str] = []
        finish = "length"
        temperature, top_p = float(params.get("temperature") or 0.0), float(params.get("top_p") or 1.0)
        ignore_end = bool(params.get("ignore_eos"))
        for token in self._tokens(prompt, most, temperature, top_p, streams.seed + sample):
            request.check()
            if self.lib.llama_vocab_is_eog(self.vocab, token) and not ignore_end:
                finish = "stop"
                break
            parts.append(decoder.decode(self._piece(token)))
            streams.text(sample, parts[-1], 1)
        parts.append(decoder.decode(b"", True))
        streams.text(sample, parts[-1], 0)
        streams.answer(sample, "".join(parts), finish)

    def _tokens(self, prompt: list[int], most: int, temperature: float, top_p: float, seed: int) -> Iterator[int]:
        """Tokens after the prompt, up to ``most``. RuntimeError where an evaluation fails or is aborted."""
        self._evaluate(prompt)
        sampler = self._sampler(temperature, top_p, seed)
        try:
            for i in range(most):
                token = self.lib.llama_sampler_sample(sampler, self.llama.ctx, -1)
                yield token
                if i + 1 < most:
                    self.llama.eval([token])
        finally:
            self.lib.llama_sampler_free(sampler)

    def _evaluate(self, prompt: list[int]) -> None:
        """Bring the context to the end of the prompt; what it shares with the last one is not evaluated again."""
        shared = 0
        while shared < min(len(prompt), len(self.evaluated)) and prompt[shared] == self.evaluated[shared]:
            shared += 1
        shared = min(shared, len(prompt) - 1)  # the last token's evaluation gives the logits
        store = self.lib.llama_get_memory(self.llama.ctx)
        if not shared or not self.lib.llama_memory_seq_rm(store, 0, shared, -1):
            self.llama.reset()
            self.lib.llama_memory_clear(store, True)
            shared = 0
        self.evaluated = []
        self.llama.n_tokens = shared
        self.llama.eval(prompt[shared:])
        self.evaluated = prompt

    def _sampler(self, temperature: float, top_p: float, seed: int) -> Any:
        """The same as the other backends: temperature first, then the nucleus; no top-k, min-p or penalties."""
        lib = self.lib
        chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        if temperature <= 0:
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_greedy())
            return chain
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_temp(temperature))
        if top_p < 1:
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_p(top_p, 1))
        number = seed & 0xFFFFFFFF
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_dist(0 if number == _RANDOM_SEED else number))
        return chain

    def _piece(self, token: int, special: bool = False) -> bytes:
        """A token's bytes, which may be part of a character."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            written = self.lib.llama_token_to_piece(self.vocab, token, buffer, size, 0, special)
            if written >= 0:
                return buffer.raw[:written]
            size = -written

    def close(self) -> None:
        """Give the memory back."""
        self.llama.close()
