"""A model in the Transformers format: found, loaded straight to its device, and sampled by ``decoding``."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kernel_lsp import errors
from kernel_lsp.modelhost import limits, memory
from kernel_lsp.modelhost.request import Request
from kernel_lsp.modelhost.streams import Detokenizer, Streams

log = logging.getLogger("kernel_lsp.modelhost")

REQUIREMENT = "'torch>=2.11,<2.14' 'transformers>=5.17,<6'"
#: bytes beside weights and KV cache: logits and their sorting, workspaces, a graph's own memory
SPARE = 1 << 30


def load(params: dict[str, Any], request: Request) -> TransformersModel:
    """Load a model that is on this machine; nothing is ever downloaded.

    Raises:
        ModelPackageMissing: transformers is missing or does not work.
        ModelMissing, ModelDamaged, ModelNotSupported: it is not there, cannot be read, or is of an unknown architecture.
        NoSuchDevice, ModelTooLarge: the device is not there, or has too little memory.
        Cancelled: the request was cancelled.
    """
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    request.progress("importing transformers", 0.0)
    try:
        import torch
        import transformers
    except ImportError as error:
        raise _package_missing(error) from error
    request.check()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    device = _device(torch, params.get("device") or "auto")
    return TransformersModel(params, request, find(params["model"]), device)


def _package_missing(error: ImportError) -> errors.ModelPackageMissing:
    package = (error.name or "transformers").partition(".")[0]
    known = package in ("torch", "transformers") and str(error).startswith("No module named")
    return errors.ModelPackageMissing(
        interpreter=sys.executable,
        package=package if known else "a working transformers",
        detail="" if known else f" ({error})",
        command=f"{sys.executable} -m pip install {REQUIREMENT}",
    )


def find(model: str) -> Path:
    """The folder of a model: itself, or the newest snapshot of ``org/name`` in the Hugging Face cache.

    Raises:
        ModelMissing: there is none.
    """
    if os.path.isdir(os.path.expanduser(model)):
        return Path(model).expanduser()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        where = " (there is no such folder)" if os.path.isabs(model) else ""
        raise errors.ModelMissing(model=model, detail=where, command=limits.pull(model)) from None


def _device(torch: Any, wanted: str) -> Any:
    """The torch.device for ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        NoSuchDevice: torch does not see it.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        wanted = "cuda:0" if count else "cpu"
    if wanted == "cuda":
        wanted = "cuda:0"
    if wanted != "cpu" and wanted not in {f"cuda:{i}" for i in range(count)}:
        detail = f"it sees {count} CUDA GPU{'' if count == 1 else 's'}"
        raise errors.NoSuchDevice(device=wanted, interpreter=sys.executable, detail=detail)
    return torch.device(wanted)


class TransformersModel:
    """A model on its device. ``about`` is the answer to ``load``."""

    def __init__(self, params: dict[str, Any], request: Request, folder: Path, device: Any) -> None:
        import torch

        from kernel_lsp.modelhost import building

        began = time.monotonic()
        self.name = str(params["model"])
        self.device = device
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[params.get("dtype") or "bf16"]
        self.limit = int(params.get("memory") or 0) or None
        self.batch = int(params.get("batch") or 0) or None
        lock, last = threading.Lock(), [0.0]

        def progress(fraction: float) -> None:
            with lock:
                if time.monotonic() - last[0] < 0.1 and fraction < 1:
                    return
                last[0] = time.monotonic()
            request.progress("loading weights", fraction)

        plan = building.plan(self.name, folder, dtype)
        self._check_memory(plan)
        self.tokenizer = building.tokenizer(self.name, folder)
        request.check()
        try:
            self.model, self.fixed = building.build(plan, device, progress, request.check)
        except (torch.OutOfMemoryError, MemoryError) as error:
            self.close()
            raise self._too_large(
                plan.bytes, plan.parameters, dtype.itemsize, " beside what else runs there"
            ) from error
        context = int(getattr(self.model.config, "max_position_embeddings", 0) or 0) or None
        asked = int(params.get("context") or 0)
        self.context = min(asked, context or asked) if asked else context
        self.about: dict[str, Any] = {
            "name": folder.name if os.path.isdir(self.name) else self.name,
            "context": self.context,
            "device": str(device),
            "dtype": params.get("dtype") or "bf16",
            "bytes": plan.bytes,
            "seconds": round(time.monotonic() - began, 3),
            "chat": bool(getattr(self.tokenizer, "chat_template", None)),
        }

    def _check_memory(self, plan: Any) -> None:
        """Check, before anything is read, that the weights fit.

        Raises:
            ModelTooLarge: they do not.
        """
        if plan.bytes > self._available():
            raise self._too_large(plan.bytes, plan.parameters, plan.dtype.itemsize, "")

    def _available(self) -> int:
        free = memory.free(self.device)
        return free if self.limit is None else min(free, self.limit)

    def _too_large(self, needed: int, parameters: int, dtype_bytes: int, detail: str) -> errors.ModelTooLarge:
        available = self._available()
        if self.limit is not None and available == self.limit:
            detail = f" (the limit that is set){detail}"
        return errors.ModelTooLarge(
            model=self.name,
            needed=limits.in_words(needed),
            device=memory.name(self.device),
            available=limits.in_words(available),
            detail=detail,
            proposal=limits.proposal(parameters, available, dtype_bytes),
        )

    def tokenize(self, prompt: str) -> list[int]:
        """The ids that reach the model: exactly one begin-of-text, if the tokenizer has one."""
        beginning = self.tokenizer.bos_token_id
        plain = limits.without_beginning(prompt, self.tokenizer.bos_token)
        ids: list[int] = self.tokenizer(plain, add_special_tokens=False)["input_ids"]
        return ids if beginning is None else [beginning, *ids]

    def _prompt(self, params: dict[str, Any]) -> list[int]:
        if params.get("messages") is None:
            return self.tokenize(params["prompt"])
        if not getattr(self.tokenizer, "chat_template", None):
            raise errors.ModelNotSupported(model=self.name, detail="it has no chat template, so it takes prompts only")
        text = self.tokenizer.apply_chat_template(params["messages"], add_generation_prompt=True, tokenize=False)
        return self.tokenize(text)

    def _stops(self) -> frozenset[int]:
        """The ids that end an answer, from the generation config and the tokenizer."""
        ids: set[int] = set()
        for owner in (getattr(self.model, "generation_config", None), self.model.config, self.tokenizer):
            found = getattr(owner, "eos_token_id", None)
            ids.update(found if isinstance(found, list | tuple) else [] if found is None else [found])
        return frozenset(ids)

    def generate(self, params: dict[str, Any], request: Request) -> dict[str, Any]:
        """Answer a ``generate`` request.

        Raises:
            PromptTooLong: the context leaves too few tokens for an answer.
            ModelTooLarge: the device has no room for so long a prompt and answer.
            Cancelled: the request was cancelled.
            UserError: the prompt is empty.
        """
        prompt = self._prompt(params)
        if not prompt:
            raise errors.UserError(message="The prompt is empty.")
        samples, seed = int(params.get("samples") or 1), int(params.get("seed") or 0)
        most = limits.room(len(prompt), int(params.get("max_tokens") or 2048), self.context)
        streams = Streams(request, samples, seed)
        at_once = min(samples, int(params.get("batch") or self.batch or samples))
        done = 0
        while done < samples:
            count = min(at_once, samples - done)
            fitting = self._fitting(count, len(prompt) + most)
            if self._run(prompt, done, fitting, most, params, streams, request):
                done += fitting
            elif fitting == 1:
                raise self._no_room(len(prompt) + most)
            else:
                at_once = fitting // 2
        return streams.result(len(prompt))

    def _run(
        self,
        prompt: list[int],
        first: int,
        count: int,
        most: int,
        params: dict[str, Any],
        streams: Streams,
        request: Request,
    ) -> bool:
        """Samples ``first`` … ``first + count - 1`` in one batch; False if there is too little memory for them."""
        import torch

        from kernel_lsp.modelhost import decoding

        sampling = decoding.Sampling(
            seeds=[streams.seed + first + i for i in range(count)],
            temperature=float(params.get("temperature") or 0.0),
            top_p=float(params.get("top_p") or 1.0),
            max_tokens=most,
            stop=frozenset() if params.get("ignore_eos") else self._stops(),
        )
        texts = [Detokenizer(self._decode) for _ in range(count)]
        said = False
        try:
            with torch.inference_mode(False), torch.no_grad():
                for updates in decoding.generate(self.model, prompt, sampling, request.check, self.fixed):
                    said = True
                    for update in updates:
                        text = texts[update.sample]
                        streams.text(first + update.sample, text.add(update.ids), len(update.ids))
                        if update.finish:
                            streams.text(first + update.sample, text.end(), 0)
                            streams.answer(first + update.sample, text.text, update.finish)
            return True
        except torch.OutOfMemoryError as error:
            if said:
                raise self._no_room(len(prompt) + most) from error
            log.warning("too little memory for %d samples at once", count)
            return False
        finally:
            if self.device.type == "cuda":
                # The cache's memory goes back at once: candidates are validated on the same GPU.
                gc.collect()
                torch.cuda.empty_cache()

    def _decode(self, ids: list[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _cache_bytes(self, tokens: int) -> int:
        """The KV cache of one sample."""
        config = self.model.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return 2 * config.num_hidden_layers * heads * dim * tokens * self.model.dtype.itemsize

    def _fitting(self, count: int, tokens: int) -> int:
        """How many of ``count`` samples have room for their KV caches at once, at least 1."""
        try:
            one = self._cache_bytes(tokens)
        except AttributeError:  # an architecture with other names: it is tried
            return count
        available = memory.free(self.device)
        if self.limit is not None:
            available = min(available, self.limit - self.about["bytes"])
        fitting = max(1, min(count, int((available - SPARE) // one)))
        if fitting < count:
            log.info("%d samples at a time: the KV cache of one takes %s", fitting, limits.in_words(one))
        return fitting

    def _no_room(self, tokens: int) -> errors.ModelTooLarge:
        return errors.ModelTooLarge(
            model=self.name,
            needed=f"{limits.in_words(self._cache_bytes(tokens))} more",
            device=memory.name(self.device),
            available=limits.in_words(max(0, memory.free(self.device))),
            detail=f" for a prompt and answer of {tokens} tokens",
            proposal="Free some memory, or set a shorter answer (max tokens).",
        )

    def close(self) -> None:
        """Give the memory back."""
        import torch

        self.model = None
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
