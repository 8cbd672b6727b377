"""Sampling many answers to one prompt: the prompt is read once, then all samples advance together, a token a step.

transformers' own ``generate`` launches every small kernel of a step from Python, which at batch 1 takes several times as
long as reading the weights. Here a step (the model's forward and the choice of a token) is captured in a CUDA graph and
replayed; the host looks at the tokens only every ``CHUNK`` steps, one chunk late, so the GPU never waits for it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_lsp.modelhost.kv_cache import FixedCache

log = logging.getLogger("kernel_lsp.modelhost")

CHUNK = 8  # steps between two looks at the tokens, on a GPU
WORTH_SHRINKING = 64  # steps that must be left for a smaller batch to pay for a new graph


@dataclass
class Sampling:
    """``seeds`` has one for each sample. Temperature 0 takes the likeliest token. ``stop``: token ids that end an answer."""

    seeds: list[int]
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: frozenset[int] = field(default_factory=frozenset)


@dataclass
class Update:
    """New tokens of a sample, without the one that ended it; ``finish`` is "stop", "length", or "" while it goes on."""

    sample: int
    ids: list[int]
    finish: str = ""


def uniforms(seeds: list[int], steps: int) -> torch.Tensor:
    """One number in [0, 1) for each step and sample, fp32 [steps, samples]: a sample's depend on its seed alone."""
    columns = [torch.rand(steps, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return torch.stack(columns, 1)


def pick(logits: torch.Tensor, temperature: float, top_p: float, uniform: torch.Tensor) -> torch.Tensor:
    """A token for each row, int64 [rows].

    Nucleus sampling (Holtzman et al., 2020): of the tokens in order of falling probability as many as reach ``top_p``; among
    those the one where the cumulative probability passes ``uniform`` times their sum. Ties keep the order of the ids.

    Args:
        logits: [rows, vocabulary].
        uniform: fp32 [rows], numbers in [0, 1).
    """
    if temperature <= 0:
        return logits.argmax(-1)
    probabilities = torch.softmax(logits.float() / temperature, -1)
    ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    cumulative = ordered.cumsum(-1)
    last = (cumulative < top_p).sum(-1, keepdim=True).clamp_(max=logits.shape[-1] - 1)
    target = uniform[:, None] * cumulative.gather(-1, last)
    chosen = torch.minimum((cumulative <= target).sum(-1, keepdim=True), last)
    return ids.gather(-1, chosen).squeeze(-1)


def generate(
    model: Any, prompt: list[int], sampling: Sampling, check: Callable[[], None], fixed: bool
) -> Iterator[list[Update]]:
    """What the samples say, a few tokens at a time, until all are complete.

    Args:
        model: a causal language model of transformers in eval mode, without gradients; if ``fixed``, with ``kv_cache.attend``.
        prompt: token ids, at least one.
        check: raises to stop; called between steps, on a CPU also between a model's modules.
        fixed: whether the model runs with a ``FixedCache`` (kv_cache.supports_fixed_cache), else with transformers' own.
    """
    device = model.device
    with contextlib.ExitStack() as stack:
        if device.type == "cuda":
            # The client may time something on the same GPU once it is told that this has ended.
            stack.callback(torch.cuda.synchronize, device)
        else:
            hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: check())
            stack.callback(hook.remove)
        yield from _advance(_Batch(model, prompt, sampling, fixed), sampling, check, device.type == "cuda")


def _advance(batch: _Batch, sampling: Sampling, check: Callable[[], None], cuda: bool) -> Iterator[list[Update]]:
    told = _Told(sampling)
    yield told.updates(batch.tokens_of(0, 1))
    done = 1
    waiting: list[_Copied] = []
    while told.open:
        check()
        if len(told.open) * 2 <= len(batch.rows) and sampling.max_tokens - done > WORTH_SHRINKING:
            batch.keep([i for i, sample in enumerate(batch.rows) if sample in told.open])
        steps = min(CHUNK if cuda else 1, sampling.max_tokens - done)
        for _ in range(steps):
            batch.advance()
        if steps:
            waiting.append(batch.tokens_of(done, done + steps))
            done += steps
        if not steps or not cuda or len(waiting) > 1:
            yield told.updates(waiting.pop(0))


@dataclass
class _Copied:
    """Tokens on their way to the host, int64 [steps, samples]; ``ready`` once ``event`` has passed."""

    tokens: torch.Tensor
    rows: list[int]
    event: torch.cuda.Event | None


class _Told:
    """What was told of each sample so far."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.lengths = [0] * len(sampling.seeds)
        self.open = set(range(len(sampling.seeds)))

    def updates(self, copied: _Copied) -> list[Update]:
        if copied.event is not None:
            copied.event.synchronize()
        updates = []
        for sample, column in zip(copied.rows, copied.tokens.T.tolist(), strict=True):
            if sample not in self.open:
                continue
            end = next((i for i, token in enumerate(column) if token in self.sampling.stop), None)
            update = Update(sample, column[:end], "" if end is None else "stop")
            self.lengths[sample] += len(update.ids)
            if end is None and self.lengths[sample] >= self.sampling.max_tokens:
                update.finish = "length"
            if update.finish:
                self.open.discard(sample)
            updates.append(update)
        return updates


class _Batch:
    """The samples that still go on: the tensors that a step reads and writes, and the step. ``rows``: which they are."""

    def __init__(self, model: Any, prompt: list[int], sampling: Sampling, fixed: bool) -> None:
        self.model, self.sampling = model, sampling
        self.device = model.device
        self.rows = list(range(len(sampling.seeds)))
        samples, steps = len(self.rows), sampling.max_tokens
        self.uniforms = uniforms(sampling.seeds, steps).to(self.device)
        self.tokens = torch.zeros((steps, samples), dtype=torch.int64, device=self.device)
        self.current = torch.zeros((samples, 1), dtype=torch.int64, device=self.device)
        self.step_number = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.host_tokens = self._host_tokens()
        ids = torch.tensor([prompt], dtype=torch.int64, device=self.device)
        self.fixed: FixedCache | None = None
        if fixed:
            length = -(-(len(prompt) + steps) // 64) * 64
            self.fixed = FixedCache(samples, length, self.device)
            positions = torch.arange(len(prompt), device=self.device)[None]
            logits = self._forward(ids, positions, self.fixed)
            self.fixed.begin(len(prompt), whole=self.device.type == "cuda")
        else:
            from transformers import DynamicCache

            self.growing = DynamicCache(config=model.config)
            logits = self._forward(ids, None, self.growing)
            self.growing.batch_repeat_interleave(samples)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.capturable = self.device.type == "cuda" and self.fixed is not None
        self._choose(logits.expand(samples, -1))

    def _host_tokens(self) -> torch.Tensor:
        return torch.empty(self.tokens.shape, dtype=torch.int64, pin_memory=self.device.type == "cuda")

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor | None, cache: Any, **more: Any) -> torch.Tensor:
        """Logits of the last token, [samples, vocabulary]."""
        if positions is not None:
            more["position_ids"] = positions
        return self.model(
            input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1, return_dict=True, **more
        ).logits[:, -1]

    def _choose(self, logits: torch.Tensor) -> None:
        """A next token for every sample, put where the next step and the host find it."""
        uniform = self.uniforms.index_select(0, self.step_number)[0]
        chosen = pick(logits, self.sampling.temperature, self.sampling.top_p, uniform)
        self.tokens.index_copy_(0, self.step_number, chosen[None])
        self.current.copy_(chosen[:, None])
        self.step_number.add_(1)

    def _step(self) -> None:
        """One token for every sample; on the host nothing changes, so that it can be captured."""
        if self.fixed is None:
            logits = self._forward(self.current, None, self.growing)
        else:
            self.fixed.advance()
            more = {"filled": self.fixed.filled} if self.fixed.whole else {}
            logits = self._forward(self.current, self.fixed.last[None], self.fixed, **more)
        self._choose(logits)

    def advance(self) -> None:
        """One step, replayed from a graph where there is one."""
        if self.fixed is not None:
            self.fixed.size += 1
        if self.capturable and self.graph is None:
            self._warm_up_and_capture()
        elif self.graph is not None:
            self.graph.replay()
        else:
            self._step()

    def _warm_up_and_capture(self) -> None:
        """This step as it is, on a side stream as capture wants it; then one captured (not run) for those to come."""
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            self._step()
        torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._step()
            self.graph = graph
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.capturable = False
            torch.cuda.synchronize(self.device)
            log.warning("no CUDA graph of a step, which will be slower: %s", str(error).splitlines()[0])

    def keep(self, places: list[int]) -> None:
        """Go on with the samples in these places alone."""
        chosen = torch.tensor(places, device=self.device)
        self.rows = [self.rows[i] for i in places]
        self.graph = None
        self.uniforms = self.uniforms[:, chosen].contiguous()
        self.tokens = self.tokens[:, chosen].contiguous()
        self.current = self.current[chosen].contiguous()
        self.host_tokens = self._host_tokens()
        if self.fixed is not None:
            self.fixed.select(chosen)
        else:
            self.growing.batch_select_indices(chosen)

    def tokens_of(self, begin: int, end: int) -> _Copied:
        """The tokens of these steps, on their way to the host."""
        target = self.host_tokens[begin:end]
        target.copy_(self.tokens[begin:end], non_blocking=True)
        event = None
        if self.device.type == "cuda":
            event = torch.cuda.Event()
            event.record()
        return _Copied(target, list(self.rows), event)
