"""The trial: the process that runs a candidate. It is given inputs, returns outputs and knows nothing of the right ones."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
import sys
import time
import traceback
from copy import deepcopy
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import schema
from kernel_lsp.validation import (
    aliasing,
    attributes,
    autocast,
    changed_numbers,
    channel,
    copies,
    failures,
    fingerprints,
    guards,
    interface,
    interpreter,
    interpreter_races,
    launches,
    matching_envelope,
    memory,
    modes,
    precompiling,
    randomness,
    sampling,
    state,
    streams,
    trial_calls,
    trial_timing,
)
from kernel_lsp.validation.chunks import identical
from kernel_lsp.validation.trees import PLAIN, convert

#: calls with a part of the program instances, before all of them are run
_ATTEMPTS = 3


class Trial:
    """A candidate, constructed, on a device; one method per message."""

    def __init__(
        self, class_name: str, init: tuple[Any, Any], base: type, device: str, dtype: torch.dtype | None = None
    ) -> None:
        """``dtype``: what the module is converted to once it is constructed."""
        self.source = ""
        self.path = ""
        self.class_name = class_name
        self.init = init
        self.base = base  # the user's class, for the timings
        self.dtype = dtype
        self.interpreted = device == "interpreter"
        self.device = torch.device("cpu" if self.interpreted else device)
        self.launches = launches.watch(self.interpreted)
        self.module: torch.nn.Module = torch.nn.Identity()
        self.original: torch.nn.Module | None = None  # the module while a copy is in its place
        self.training = False
        self.timed: dict[str, Any] = {}
        self.variants: dict[str, torch.nn.Module] = {}
        self.earlier = aliasing.Earlier()
        self.sampling = sampling.install() if self.interpreted else None
        if self.interpreted:
            interpreter_races.install()
        self.fingerprints = fingerprints.Fingerprints(base)  # before the candidate is imported

    def load(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Import the file at ``path`` and construct.

        Raises:
            Failure: "rejected" where it cannot be imported, "not-drop-in" where the class cannot be constructed as the module is.
        """
        self.path = message["path"]
        with open(self.path, encoding="utf-8") as file:
            self.source = file.read()
        self.training = message.get("training", False)
        self.module = torch.nn.Identity()  # first, so that there are never two copies of the weights
        try:
            name = os.path.basename(self.path).removesuffix(".py")  # as where it is used
            spec = importlib.util.spec_from_file_location(name, self.path)
            assert spec is not None and spec.loader is not None
            candidate = importlib.util.module_from_spec(spec)
            sys.modules[name] = candidate
            with self._words_of_cuda():
                spec.loader.exec_module(candidate)
            kind = getattr(candidate, self.class_name)
        except BaseException as error:
            traceback.print_exc()
            reason = f"its file cannot be imported: {failures.sentence(error)}"
            raise failures.Failure("rejected", reason, failures.line_in(self.path, error)) from None
        try:
            with self._words_of_cuda(), torch.device(self.device):
                module = kind(*self.init[0], **self.init[1])
            if not isinstance(module, torch.nn.Module):
                raise TypeError(f"{self.class_name} is not a torch.nn.Module")
            if said := interface.difference(kind, self.base):
                raise failures.Failure("not-drop-in", f"{self.class_name}{said}")
        except failures.Failure:
            raise
        except Exception as error:
            traceback.print_exc()
            reason = f"{self.class_name} cannot be constructed as the module is: {failures.sentence(error)}"
            raise failures.Failure("not-drop-in", reason, failures.line_in(self.path, error)) from None
        self.module = module.to(self.device, self.dtype).train(self.training)
        return {
            "changed": self._changed(),
            "state": [[k, list(v.shape), str(v.dtype)] for k, v in self.module.state_dict().items()],
        }, None

    def state(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Load the module's state strictly.

        Raises:
            Failure: "not-drop-in" where it does not fit.
        """
        try:
            self.module.load_state_dict(tree, strict=True)
        except Exception as error:
            reason = f"the module's state_dict does not load: {' '.join(str(error).split())[:300]}"
            raise failures.Failure("not-drop-in", reason) from None
        return {}, None

    def copy(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Put a copy of the module in its place, with another state; ``copied`` says whether it is by copy.deepcopy."""
        original = self.original = self.module
        try:
            made, copied = deepcopy(original), True
        except Exception:
            traceback.print_exc()
            with self._words_of_cuda(), torch.device(self.device):
                constructed = type(original)(*self.init[0], **self.init[1])
            made, copied = constructed.to(self.device, self.dtype).train(self.training), False
        copies.give(made, original, tree)
        self.module = made
        return {"copied": copied}, None

    def original_again(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Put the module in the place of its copy, which is let go; without a copy there is nothing to do."""
        self.module, self.original = self.original or self.module, None
        return {}, None

    def assign(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Give an attribute a number, or with None that of its class again; ``assigned`` says whether there is a module of that path."""
        place = message["path"], message["name"]
        return {"assigned": changed_numbers.assign(self.module, *place, message["value"])}, None

    def buffers(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """The buffers as they are now, with the parameters and plain attributes that are asked for."""
        named = dict(self.module.named_buffers()) | attributes.plain_tensors(self.module, message.get("attributes", []))
        if message.get("parameters"):
            named |= dict(self.module.named_parameters())
        return {}, {name: tensor.detach().clone() for name, tensor in named.items()}

    def restore(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Give buffers and attributes the values that the module's have before each call."""
        state.put_back(self.module, tree, only_known=True, anew=True)
        return {}, None

    def to(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Convert the module's floats to a dtype, and complex tensors to one with such parts."""
        convert(self.module, getattr(torch, message["dtype"]))
        return {}, None

    def call(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Run the candidate on (args, kwargs, cotangents); outputs, and gradients where ``grad_mode`` is set.

        Under the interpreter a launch may leave program instances out after ``launch_seconds``, if the rest can be
        validated without them; the answer's ``instances`` says how many of how many were run. Fails with
        "not-interpretable" where all of them are needed and take more than ``most_seconds``.

        Raises:
            Failure: "not-interpretable" where its launches take too long under the interpreter.
        """
        if self.sampling is None or message.get("grad_mode") or message.get("launch_seconds") is None:
            return self._call(message, tree)
        before = state.snapshot(self.module)
        given = [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]
        copies = [t.clone() for t in given]

        def again() -> None:
            state.put_back(self.module, before, only_known=True)
            for tensor, copy in zip(given, copies, strict=True):
                if not identical(tensor, copy):
                    tensor.copy_(copy)

        for _ in range(_ATTEMPTS):
            began = time.monotonic()
            answer, result = self._sampled(message, tree)
            run, total = self.sampling.run, self.sampling.total
            soon = time.monotonic() - began < sampling.LEAST * message["launch_seconds"]
            if run == total or not soon:
                break
            again()  # on a busy machine an instance was thought to take longer than it does
        alone = answer is not None and answer["launches"] == 1 and not answer["operators"] and not answer["mutated"]
        told = not self.sampling.atomics and alone and not state.changed(self.module, before)
        if answer is None or self.sampling.left_out or (run < total and (soon or not told)):
            most = message.get("most_seconds", math.inf)
            if (seconds := self.sampling.expected()) > most:  # of the launches that there were before one was left out
                raise failures.Failure("not-interpretable", f"its launches take about {seconds:.0f} s here")
            again()
            answer, result = self._whole(message, tree, most)
            run = total
        answer["instances"] = [run, total]
        return answer, result

    def _whole(self, message: dict[str, Any], tree: Any, most: float) -> tuple[dict[str, Any], Any]:
        """A call with all of its program instances, in ``most`` seconds.

        Raises:
            Failure: "not-interpretable" where it takes longer.
        """
        assert self.sampling is not None
        self.sampling.reset()
        self.sampling.end = time.monotonic() + most
        too_long = failures.Failure("not-interpretable", f"its launches take more than {most:.0f} s here")
        try:
            answer = self._call(message, tree)
        except failures.Failure:
            if self.sampling.late:
                raise too_long from None
            raise
        finally:
            self.sampling.end = None
        if self.sampling.late:  # the candidate has caught it
            raise too_long
        return answer

    def _sampled(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any] | None, Any]:
        """A call in bounded time; no answer where torch fell over what instances that were left out have not written."""
        assert self.sampling is not None
        self.sampling.reset()
        self.sampling.seconds = message["launch_seconds"]
        try:
            return self._call(message, tree)
        except failures.Failure:
            if self.sampling.run == self.sampling.total:
                raise
            return None, None
        finally:
            self.sampling.seconds = None

    def _call(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        args, kwargs, cotangents = tree
        watch = guards.Guards(message.get("fresh_integers"))
        names = iter(message["names"])
        lent = message.get("lent", False)  # then the referee has put them between guards, and looks at them afterwards

        def place(value: Any) -> Any:
            return watch.place(value, next(names), self.device) if isinstance(value, torch.Tensor) else value

        args, kwargs = (tuple(args), kwargs) if lent else pytree.tree_map(place, (tuple(args), kwargs))
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        sampled = self.sampling is not None and self.sampling.seconds is not None
        # Of lent memory the referee sees for itself what was changed.
        before = [t.clone() for t in tensors] if sampled or not lent else []
        places = [t.untyped_storage().data_ptr() for t in tensors]
        wanted = [tensors[i].requires_grad_() for i in message.get("grad", [])]
        frozen = [p for p in self.module.parameters() if p.requires_grad] if message.get("frozen") else []
        modes.put(self.module, message.get("train", False) or self.training, message.get("eval_part", ""))
        if message.get("primed"):
            trial_calls.prime(self.module, args, kwargs, tensors, self._words_of_cuda())
            if self._left_out():
                trial_calls.count_a_change(self.module)
        self.launches.muted = self.launches.graphs.muted = message.get("muted", False)
        self.launches.graphs.integers = message.get("fresh_integers")
        self.launches.reset()
        paths = message.get("attributes", [])
        held = attributes.plain_tensors(self.module, paths)
        values = {path: tensor.detach().clone() for path, tensor in held.items()}
        trained = [m.training for m in self.module.modules()]
        poisoned = guards.Poisoned(watch)
        poisoned.sought = self.launches.sought = frozenset(message.get("sought", []))
        with randomness.other():  # not where an earlier call of the candidate may have put the generators
            undrawn = randomness.state()
        grad_mode = bool(message.get("grad_mode"))
        used_streams = streams.Streams(self.device) if self.device.type == "cuda" else None
        self.launches.streams = used_streams
        joined = True
        if message.get("seed") is not None:
            randomness.seed(message["seed"])
        try:
            for parameter in frozen:
                parameter.requires_grad_(False)
            chosen = interpreter.configuration(message.get("configuration"))
            envelopes = matching_envelope.noted(self.module)
            mode = torch.inference_mode() if message.get("inference") else torch.set_grad_enabled(grad_mode)
            rounding = autocast.on(message.get("autocast", ""))
            with mode, poisoned, self._words_of_cuda(), chosen, rounding, envelopes as holding:
                out = channel.plain(self.module(*args, **kwargs))
                poisoned.guarding = False
                outputs = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
                requires = [t.requires_grad for t in outputs]  # a view of a parameter does again once that does
                result = (out, trial_calls.gradients(self.module, out, wanted, cotangents)) if grad_mode else out
            if used_streams is not None:
                joined = used_streams.joined()
                torch.cuda.synchronize()
        except Exception as error:
            traceback.print_exc()
            raise failures.classify(error, self.path, self.source) from None
        finally:
            for parameter in frozen:
                parameter.requires_grad_()
            if self.launches.muted or self._left_out():
                trial_calls.count_a_change(self.module)
            self.launches.muted = self.launches.graphs.muted = False
            self.launches.streams = None
        answer: dict[str, Any] = {
            "requires": requires,
            "lazy": [type(t).__name__ for t in outputs if type(t) not in PLAIN],
            "launches": self.launches.graphs.launches(self.launches.count),
            "envelope": holding[0] if holding else 0,
            "joined": joined,
            "swallowed": self.launches.swallowed[:1],
            "operators": self.launches.graphs.operators(poisoned.operators),
            "alone": poisoned.alone + self.launches.checksums,
            "random": randomness.state() != undrawn,
            "changed": self._changed()
            + ([] if [m.training for m in self.module.modules()] == trained else ["the module's training mode"]),
            "mutated": [
                i for i, (old, new) in enumerate(zip(before, tensors, strict=False)) if not identical(old, new.detach())
            ],
            "damaged": watch.damaged() + trial_calls.moved(tensors, places, message["names"]),
            "autotuned": dict(interpreter.autotuned),
            "aliases": aliasing.shared(outputs, tensors),
            "attributes": attributes.handled(self.module, held, values, [*tensors, *outputs], paths),
            "kept": self.earlier.shares(outputs, tensors),
        }
        self.earlier.add(outputs, tensors)
        try:
            channel.describe(result, [])
        except channel.Opaque as error:
            raise failures.Failure("wrong", f"it returns a {error}, not tensors") from None
        return answer, result

    def _left_out(self) -> bool:
        """Whether program instances were left out since the call began."""
        return self.sampling is not None and self.sampling.run < self.sampling.total

    def _changed(self) -> list[str]:
        return (
            self.fingerprints.changed()
            + interpreter.overwritten
            + ([] if self.launches.intact() else ["the launch of Triton's kernels"])
        )

    def precompile(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Compile the launches of calls with inputs of these shapes, on all cores at once. No launch is made."""
        if self.interpreted or "autotune" in self.source:  # an autotuner would choose among launches that were not made
            return {}, None

        self._precompile([self.module], message["cases"])
        return {}, None

    def precompile_variants(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """The same for the candidates that were kept, a group of their names after the other.

        No further group is begun after so many ``seconds``. Gives how many candidates there was time for.
        """
        began, compiled = time.monotonic(), 0
        for group in message["groups"]:
            if compiled and time.monotonic() - began > message["seconds"]:
                break
            self._precompile([self.variants[name] for name in group if name in self.variants], message["cases"])
            compiled += len(group)
        return {"compiled": compiled}, None

    def _precompile(self, modules: list[torch.nn.Module], cases: list[Any]) -> None:
        def call(module: torch.nn.Module, case: Any) -> Any:
            args, kwargs = precompiling.empty(channel.rebuild(case, []), self.device)
            return module(*args, **kwargs)

        calls = [functools.partial(call, module, case) for case in cases for module in modules]
        with self._words_of_cuda():
            precompiling.precompile(calls, self.launches)
        for module in modules:  # which were called without a launch
            trial_calls.count_a_change(module)
        memory.release()

    def kernels(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Registers, spills and shared memory of what ran here."""
        found = [schema.to_json(k) for k in launches.compiled(self.launches)]
        return {"kernels": found}, None

    def time(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Time eager and the candidate on (args, kwargs, None)."""
        with self._unwatched():
            found, out = trial_timing.time_eager(self, tree, message["beyond"])
        return found | {"changed": self._changed()}, out

    def run(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Call the candidate on (args, kwargs, None) as often as is said."""
        with self._unwatched():
            return trial_timing.run(self, tree, message["calls"])

    def replay(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Replay the graph that was timed, with (args, kwargs, None) in place of its inputs."""
        with self._unwatched():
            return trial_timing.replay(self, tree)

    def profile(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """The GPU kernels of a few equal calls on (args, kwargs, None), as the profiler sees them."""
        with self._unwatched():
            return trial_timing.profiled(self, tree), None

    def keep(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Keep the candidate that is loaded under a name, to be timed beside others; all share one set of weights."""
        for other in self.variants.values():
            self.module.load_state_dict(other.state_dict(), assign=True)
            break
        self.variants[message["name"]] = self.module
        return {}, None

    def choose(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Make a candidate that was kept the one that is called."""
        self.module = self.variants[message["name"]]
        self.launches.kernels.clear()
        return {}, None

    def time_variants(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Time eager and the candidates that were kept, all in turn, on (args, kwargs, None)."""
        with self._unwatched():
            options = {name: message[name] for name in ("elsewhere", "weight", "replays") if name in message}
            found, out = trial_timing.time_variants(
                self, tree, message["names"], message["worth"], message["beyond"], **options
            )
        return found | {"changed": self._changed()}, out

    def time_rounds(self, message: dict[str, Any], tree: Any) -> tuple[dict[str, Any], Any]:
        """Time eager and the candidates that were kept, all in turn, on (args, kwargs, None); every round's times."""
        with self._unwatched():
            found, out = trial_timing.time_rounds(self, tree, message["names"])
        return found | {"changed": self._changed()}, out

    @contextlib.contextmanager
    def _unwatched(self) -> Any:
        """Launches as they are, without our hook: a part of what is timed."""
        self.launches.stop()
        try:
            yield
        finally:
            self.launches.start()

    @contextlib.contextmanager
    def _words_of_cuda(self) -> Any:
        if self.interpreted:
            with interpreter.pretending_cuda():
                yield
        else:
            with torch.cuda.device(self.device):
                yield
