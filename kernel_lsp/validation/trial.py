"""The trial: the process that runs a candidate. It is given inputs, returns outputs and knows nothing of the right ones."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
import traceback
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import channel, failures, guards, interpreter, launches

#: the name under which a candidate's file is imported
MODULE = "kernel_lsp_candidate"


class Trial:
    """A candidate, constructed, on a device; one method per message."""

    def __init__(self, path: str, class_name: str, init: tuple[Any, Any], base: type, device: str) -> None:
        with open(path) as file:
            self.source = file.read()
        self.path = path
        self.class_name = class_name
        self.init = init
        self.base = base  # the user's class, for the timings
        self.interpreted = device == "interpreter"
        self.device = torch.device("cpu" if self.interpreted else device)
        self.launches = launches.watch(self.interpreted)
        self.module: torch.nn.Module = torch.nn.Identity()

    def load(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Import and construct. Fails with "rejected" or "not-drop-in"."""
        try:
            spec = importlib.util.spec_from_file_location(MODULE, self.path)
            assert spec is not None and spec.loader is not None
            candidate = importlib.util.module_from_spec(spec)
            sys.modules[MODULE] = candidate
            with self._words_of_cuda():
                spec.loader.exec_module(candidate)
            kind = getattr(candidate, self.class_name)
        except BaseException as error:
            traceback.print_exc()
            reason = f"its file cannot be imported: {failures.sentence(error)}"
            raise failures.Failure("rejected", reason, failures.line_in(self.path, error)) from None
        try:
            with self._words_of_cuda():
                module = kind(*self.init[0], **self.init[1])
            if not isinstance(module, torch.nn.Module):
                raise TypeError(f"{self.class_name} is not a torch.nn.Module")
        except Exception as error:
            traceback.print_exc()
            reason = f"{self.class_name} cannot be constructed as the module is: {failures.sentence(error)}"
            raise failures.Failure("not-drop-in", reason, failures.line_in(self.path, error)) from None
        self.module = module.to(self.device).eval()
        return {"state": [[k, list(v.shape), str(v.dtype)] for k, v in self.module.state_dict().items()]}, None

    def state(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Load the module's state strictly. Fails with "not-drop-in"."""
        try:
            self.module.load_state_dict(tree, strict=True)
        except Exception as error:
            reason = f"the module's state_dict does not load: {' '.join(str(error).split())[:300]}"
            raise failures.Failure("not-drop-in", reason) from None
        return {}, None

    def to(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Convert the module's floats to a dtype."""
        self.module.to(getattr(torch, message["dtype"]))
        return {}, None

    def call(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Run the candidate on (args, kwargs, cotangents); outputs, and gradients where ``grad`` is set."""
        args, kwargs, cotangents = tree
        watch = guards.Guards()
        names = iter(message["names"])
        place = lambda t: watch.place(t.to(self.device), next(names)) if isinstance(t, torch.Tensor) else t  # noqa: E731
        args, kwargs = pytree.tree_map(place, (tuple(args), kwargs))
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        before = [t.clone() for t in tensors]
        wanted = message.get("grad", [])
        for i in wanted:
            tensors[i].requires_grad_()
        self.module.train(message.get("train", False))
        self.launches.muted = message.get("muted", False)
        self.launches.reset()
        poisoned = guards.Poisoned(watch)
        began = time.monotonic()
        try:
            with torch.set_grad_enabled(bool(message.get("grad_mode"))), poisoned, self._words_of_cuda():
                out = self.module(*args, **kwargs)
                answer, result = {"requires": _requires(out)}, out
                if message.get("grad_mode"):
                    result = (out, self._gradients(out, [tensors[i] for i in wanted], cotangents))
            if self.device.type == "cuda":
                torch.cuda.synchronize()
        except Exception as error:
            traceback.print_exc()
            raise failures.classify(error, self.path, self.source) from None
        finally:
            self.launches.muted = False
        answer.update(
            launches=self.launches.count,
            operators=dict(poisoned.operators),
            mutated=[i for i, (old, new) in enumerate(zip(before, tensors, strict=True)) if not _identical(old, new)],
            damaged=watch.damaged(),
            seconds=time.monotonic() - began,
            autotuned=sorted(interpreter.autotuned),
            lazy=[type(t).__name__ for t in pytree.tree_leaves(out) if type(t) is not torch.Tensor and _is_tensor(t)],
        )
        try:
            channel.describe(result, [])
        except channel.Opaque as error:
            reason = f"it returns {error}, not tensors"
            raise failures.Failure("wrong", reason) from None
        return answer, result

    def _gradients(self, out: Any, inputs: list[torch.Tensor], cotangents: list[torch.Tensor]) -> list[Any]:
        """Of the inputs, then of the parameters; None where there is none."""
        tensors = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
        pairs = [(t, c.to(t.device)) for t, c in zip(tensors, cotangents, strict=False) if t.requires_grad]
        wanted = [*inputs, *(p for p in self.module.parameters() if p.requires_grad)]
        if not pairs or not wanted:
            return [None] * len(wanted)
        outs, grads = zip(*pairs, strict=True)
        return list(torch.autograd.grad(outs, wanted, grads, allow_unused=True))

    def kernels(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Registers, spills and shared memory of what ran here."""
        return {"kernels": [schema.to_json(k) for k in launches.compiled(self.launches)]}, None

    @contextlib.contextmanager
    def _words_of_cuda(self) -> Any:
        if self.interpreted:
            with interpreter.pretending_cuda():
                yield
        else:
            with torch.cuda.device(self.device):
                yield


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _requires(out: Any) -> list[bool]:
    return [t.requires_grad for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]


def _identical(a: torch.Tensor, b: torch.Tensor) -> bool:
    b = b.detach()
    return bool(((a == b) | ((a != a) & (b != b))).all()) if a.numel() else True


def serve(end: channel.Channel, trial: Trial) -> None:
    """Answer messages until the referee hangs up. A failure is an answer as well."""
    if trial.device.type == "cuda":
        torch.cuda.init()
    while True:
        try:
            message, tree, _ = end.receive()
        except channel.Closed:
            return
        try:
            answer, result = getattr(trial, message["do"])(message, tree)
        except failures.Failure as failure:
            answer, result = {"failed": failure.to_json()}, None
        except Exception as error:
            traceback.print_exc()
            answer, result = {"failed": failures.classify(error, trial.path, trial.source).to_json()}, None
        end.send(answer, result)
