"""The referee: holds the right answers, asks the trial for its own, and says what the candidate is worth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp import errors, schema
from kernel_lsp.validation import channel, compare, failures, plan
from kernel_lsp.validation.guards import unwritten
from kernel_lsp.validation.inputs import Inputs
from kernel_lsp.validation.oracle import Oracle, Reference

#: seconds that one launch may take under the interpreter before program instances are left out
LAUNCH_SECONDS = 0.25


@dataclass
class Reach:
    """How the trial is reached: its channel, how it ended, how to end it."""

    channel: channel.Channel
    reap: Callable[[], str]  # waits for its end; in words
    kill: Callable[[], None]
    deadline: float  # of time.monotonic()


#: seconds for the checks that were put off
FINISH_SECONDS = 10.0


@dataclass
class Referee:
    module: torch.nn.Module
    inputs: Inputs
    reach: Reach
    mode: str  # "gpu" or "interpreter"
    emit: Callable[[str, Any], None]
    soft_seconds: float  # after a share of this, by the step's patience, a step is left out, and that is said
    checks: list[schema.Check] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    launched: int | None = None
    sampled: list[float] = field(default_factory=list)
    error: float = 0.0
    eager_error: float = 0.0
    deferred: list[plan.Step] = field(default_factory=list)  # for after the timing, on a GPU

    def verdict(self) -> schema.Verdict:
        """Run the checks, those that may wait only while time allows; stops at the first that fails."""
        self.oracle = Oracle(self.module)
        self.limits += self.oracle.limits
        if self.mode == "interpreter":
            self.limits += plan.INTERPRETER_LIMITS
        return self._verdict(self._load, plan.plan(self.inputs, self.mode), self.soft_seconds)

    def finish(self) -> schema.Verdict:
        """Run what ``verdict`` put off until the times were known, and judge again."""
        steps, self.deferred = self.deferred, []
        return self._verdict(self.reload, steps, FINISH_SECONDS)

    def _verdict(self, begin: Callable[[], None], steps: list[plan.Step], seconds: float) -> schema.Verdict:
        began = time.monotonic()
        status, reason, line = "ok", "", None
        try:
            begin()
            self._run(steps, began, seconds)
        except failures.Failure as failure:
            if failure.status == "not-interpretable":
                raise errors.NotInterpretable(what=failure.reason) from None
            status, reason, line = failure.status, failure.reason, failure.line
        limits = list(self.limits)
        if self.deferred:
            limits.append("still to be checked: " + ", ".join(step.name for step in self.deferred))
        if self.sampled:
            percent = f"{min(self.sampled) * 100:.0f}"
            limits.append(f"in large launches only a part of the program instances was run, at least {percent} %")
        return schema.Verdict(
            status=status,  # type: ignore[arg-type]
            reason=reason,
            line=line,
            mode=self.mode,  # type: ignore[arg-type]
            checks=self.checks,
            error=self.error if math.isfinite(self.error) and self.checks else None,
            eager_error=self.eager_error if math.isfinite(self.eager_error) and self.checks else None,
            precision=self._precision(),
            launches=self.launched,
            limits=list(dict.fromkeys(limits)),
        )

    # what the trial is asked

    def ask(self, message: dict[str, Any], tree: Any = None) -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
        """The trial's answer. Raises Failure: the candidate's own, or what its death or its silence means."""
        self._send(message, tree)
        return self._receive()

    def _send(self, message: dict[str, Any], tree: Any = None) -> None:
        try:
            self.reach.channel.send(message, tree)
        except channel.Closed:
            raise self._death() from None

    def _receive(self) -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
        try:
            answer, tree, metas = self.reach.channel.receive(max(0.0, self.reach.deadline - time.monotonic()))
        except channel.TooLate:
            self.reach.kill()
            self.reach.reap()
            raise failures.Failure("timeout", "it gave no answer in the time allowed, and was stopped") from None
        except channel.Closed:
            raise self._death() from None
        except ValueError as error:
            raise failures.Failure("cheating", f"it sent a malformed answer: {error}") from None
        if "failed" in answer:
            raise failures.Failure(**answer["failed"])
        return answer, tree, metas

    def _death(self) -> failures.Failure:
        how = self.reach.reap()
        if "SIGKILL" in how:
            reason = f"its process was {how}, which is what the system does when memory runs out"
            return failures.Failure("out-of-memory", reason)
        meaning = ": memory that is not its own was touched" if "SIGSEGV" in how or "SIGBUS" in how else ""
        return failures.Failure(
            "crashed", f"its process was {how}{meaning}" if "killed" in how else f"its process ended: {how}"
        )

    def _passed(self, name: str, detail: str = "") -> None:
        self.checks.append(schema.Check(name, True, detail))

    def _failed(self, status: str, name: str, reason: str, line: int | None = None) -> failures.Failure:
        self.checks.append(schema.Check(name, False, reason))
        return failures.Failure(status, reason, line)

    # the checks

    def _load(self) -> None:
        answer, _, _ = self.ask({"do": "load"})
        mine = {k: (tuple(shape), dtype) for k, shape, dtype in answer["state"]}
        theirs = {k: (tuple(v.shape), str(v.dtype)) for k, v in self.module.state_dict().items()}
        for key in sorted(theirs.keys() ^ mine.keys()):
            where = "lacks" if key in theirs else "has an extra"
            raise self._failed("not-drop-in", "state_dict", f"its state_dict {where} {key!r}")
        for key, (shape, dtype) in theirs.items():
            if mine[key] != (shape, dtype):
                reason = f"its {key!r} is {mine[key][1]}{list(mine[key][0])}, the module's is {dtype}{list(shape)}"
                raise self._failed("not-drop-in", "state_dict", reason)
        self.ask({"do": "state"}, dict(self.module.state_dict()))
        self._passed("drop-in", f"same constructor, same state_dict ({len(theirs)} entries)")

    def reload(self) -> None:
        """Have the candidate imported and constructed anew: the checks may have converted and trained what was there."""
        self.ask({"do": "load"})
        self.ask({"do": "state"}, dict(self.module.state_dict()))

    def _run(self, steps: list[plan.Step], began: float, seconds: float) -> None:
        skipped: list[plan.Step] = []
        for i, step in enumerate(steps):
            if time.monotonic() - began > seconds * step.patience:
                skipped.append(step)
                continue
            self.emit("progress", {"stage": "check", "message": step.name, "fraction": i / len(steps)})
            if step.perturb:
                self.oracle.perturb(step.perturb)
                self.ask({"do": "state"}, dict(self.module.state_dict()))
            if step.kind == "double":
                self._check_double(step)
            elif step.kind == "gradients":
                self._check_gradients(step)
            else:
                self._check_values(step)
        if self.mode == "gpu" and seconds == self.soft_seconds:
            self.deferred = skipped
        elif skipped:
            self.limits.append("left out to be quick: " + ", ".join(step.name for step in skipped))

    def _check_values(self, step: plan.Step) -> None:
        tree = step.make(self.inputs)
        names = self.inputs.names
        request = {"do": "call", "names": names, "train": step.train, "launch_seconds": LAUNCH_SECONDS}
        try:
            reference = self.oracle.answer(tree, step.train)
            if step.train and not self._repeats(tree, reference):
                return
        except Exception as error:
            if step.required:
                raise errors.ForwardFailed(
                    path=None, line=None, class_name=type(self.module).__name__, detail=failures.sentence(error)
                ) from None
            return  # the module itself does not take such inputs
        for repetition in range(2 if step.repeat else 1):
            began = time.monotonic()
            answer, out, metas = self.ask(request, (*tree, None))
            slow = self.mode == "interpreter" and time.monotonic() - began > 2 * LAUNCH_SECONDS
            self._judge_call(step, answer, out, metas, reference, tree)
            if repetition == 0 and step.decoy:
                self._check_decoy(step, request, tree, out, answer)
            if slow:
                break  # the interpreter repeats itself exactly; caching shows in the other steps
        said = f"relative error {self._last.error:.2g} (eager {self._last.eager_error:.2g})"
        self._passed(step.name, f"{plan.shapes(self.inputs, tree)}: {said}")

    def _judge_call(
        self,
        step: plan.Step,
        answer: dict[str, Any],
        out: Any,
        metas: list[dict[str, Any]],
        reference: Reference,
        tree: tuple[Any, Any],
    ) -> None:
        where = f"{step.name}, {plan.shapes(self.inputs, tree)}"
        if answer["lazy"]:
            raise self._failed("cheating", step.name, f"{where}: it returns a {answer['lazy'][0]}, not a plain tensor")
        if answer["damaged"]:
            raise self._failed("wrong", step.name, f"{where}: {answer['damaged'][0]}")
        if extra := sorted(set(answer["mutated"]) ^ set(reference.mutated)):
            does = "changes" if extra[0] in answer["mutated"] else "does not change"
            contrast = "the module does not" if does == "changes" else "the module does"
            raise self._failed("wrong", step.name, f"{where}: it {does} {self.inputs.names[extra[0]]}, {contrast}")
        devices = {meta["device"] for meta in metas}
        expected = {t.device.type for t in pytree.tree_leaves(reference.eager) if isinstance(t, torch.Tensor)}
        if devices != expected and devices:
            raise self._failed("wrong", step.name, f"{where}: its outputs are on {', '.join(sorted(devices))}")
        out = self._only_what_ran(out, answer, reference)
        self._last = self._compare(out, reference.eager, reference.exact)
        if not self._last.passed:
            raise self._failed("wrong", step.name, f"{where}: {self._last.reason}")
        self._note_strides(metas, reference.eager)
        if step.inside:
            self.launched = answer["launches"] if self.launched is None else self.launched
            if answer["autotuned"]:
                first = ", ".join(answer["autotuned"])
                self.limits.append(f"only the first autotuning configuration of {first} was run")

    def _only_what_ran(self, out: Any, answer: dict[str, Any], reference: Reference) -> Any:
        """Where program instances were left out, what they would have written is taken as right, and that is said."""
        run, total = answer.get("instances") or (0, 0)
        if run >= total:
            return out
        share = run / total
        eager = [t for t in pytree.tree_leaves(reference.eager) if isinstance(t, torch.Tensor)]
        mine = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
        for a, b in zip(mine, eager, strict=False):
            if a.shape == b.shape and a.dtype == b.dtype:
                missing = unwritten(a)
                if a.numel() and 1 - missing.double().mean().item() >= 0.25 * share:  # else it writes too little
                    a[missing] = b[missing]
        self.sampled.append(share)
        return out

    def _compare(self, out: Any, eager: Any, exact: Any, what: str = "output") -> compare.Comparison:
        # Both through the same description, so that a result's own types (named tuples, …) compare as they came.
        plain, wide = _plainly(eager), _plainly(exact)
        result = compare.compare(out, plain, wide, what)
        if math.isfinite(result.error):
            self.error, self.eager_error = max(self.error, result.error), max(self.eager_error, result.eager_error)
        return result

    def _note_strides(self, metas: list[dict[str, Any]], eager: Any) -> None:
        tensors = [t for t in pytree.tree_leaves(eager) if isinstance(t, torch.Tensor)]
        for meta, theirs in zip(metas, tensors, strict=False):
            if theirs.numel() > 1 and meta["stride"] != list(theirs.stride()) and 1 not in theirs.shape:
                self.limits.append(
                    f"the strides of its output, {meta['stride']} where eager's are {list(theirs.stride())}"
                )
                return

    def _check_decoy(
        self, step: plan.Step, request: dict[str, Any], tree: Any, out: Any, answer: dict[str, Any]
    ) -> None:
        """Without a launch, or with launches that do not matter to the result, there is no kernel."""
        if answer["launches"] == 0:
            raise self._failed("cheating", "launches", "it launches no Triton kernel for the example inputs")
        try:
            _, muted, _ = self.ask({**request, "muted": True}, (*tree, None))
        except failures.Failure as failure:
            if failure.status in ("timeout", "out-of-memory") or not self._alive():
                raise
            muted = None
        if muted is not None and _identical(out, muted):
            reason = "its result is the same when its Triton kernels do not run: they are a decoy"
            raise self._failed("cheating", "launches", reason)
        count = "1 Triton launch" if answer["launches"] == 1 else f"{answer['launches']} Triton launches"
        torch_calls = sum(answer["operators"].values())
        names = ", ".join(f"{n} × {c}" if c > 1 else n for n, c in answer["operators"].items())
        beside = f"; torch computes {names}" if torch_calls else ""
        self._passed(
            "launches",
            f"{count} a call, and the result depends on {'it' if answer['launches'] == 1 else 'them'}{beside}",
        )

    def _alive(self) -> bool:
        try:
            self.ask({"do": "to", "dtype": "none"})
        except failures.Failure as failure:
            return "its process" not in failure.reason
        return True

    def _repeats(self, tree: tuple[Any, Any], reference: Reference) -> bool:
        """Whether eager in train mode is a function of its inputs at all (dropout is not)."""
        again = self.oracle.answer(tree, train=True)
        return _identical(reference.eager, again.eager)

    def _check_gradients(self, step: plan.Step) -> None:
        tree = step.make(self.inputs)
        tensors = [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]
        wanted = [i for i, t in enumerate(tensors) if t.dtype.is_floating_point or t.dtype.is_complex]
        try:
            eager_out = self.oracle.answer(tree).eager
            outs = [t for t in pytree.tree_leaves(eager_out) if isinstance(t, torch.Tensor)]
            generator = torch.Generator(outs[0].device).manual_seed(11)
            cotangents = [
                torch.randn(t.shape, generator=generator, device=t.device).to(t.dtype)
                if t.dtype.is_floating_point
                else torch.zeros_like(t)
                for t in outs
            ]
            found = self.oracle.gradients(tree, cotangents, wanted)
        except Exception:
            return  # the module itself has no gradients
        if found is None:
            return
        eager, exact, requires = found
        request = {"do": "call", "names": self.inputs.names, "grad_mode": True, "grad": wanted}
        try:
            answer, result, _ = self.ask(request, (*tree, cotangents))
        except failures.Failure as failure:
            reason = f"with gradients required it fails: {failure.reason}"
            raise self._failed(failure.status, step.name, reason, failure.line) from None
        if answer["requires"] != requires:
            reason = "with gradients required its output is detached, the module's is not"
            raise self._failed("wrong", step.name, reason)
        got = result[1] if isinstance(result, (tuple, list)) and len(result) == 2 else None
        kept = self.error, self.eager_error
        comparison = self._compare(got, eager, exact, "gradient")
        if not answer["launches"]:  # eager's own, of both: gradients that are zero but for rounding have any error
            self.error, self.eager_error = kept
        if not comparison.passed:
            raise self._failed("wrong", step.name, f"with gradients required: {comparison.reason}")
        how = "runs eager" if not answer["launches"] else "computes gradients with its kernels"
        self._passed(step.name, f"with gradients required it {how}: relative error {comparison.error:.2g}")

    def _check_double(self, step: plan.Step) -> None:
        """Another dtype than it was validated in: it must give what eager gives. Last, since the module is converted."""
        if self.oracle.double is None:
            return
        from kernel_lsp.validation.oracle import doubled

        tree = doubled(step.make(self.inputs))
        try:
            with torch.no_grad():
                expected = self.oracle.double.eval()(*tree[0], **tree[1])
        except Exception:
            return
        try:
            self.ask({"do": "to", "dtype": "float64"})
            answer, out, _ = self.ask({"do": "call", "names": self.inputs.names}, (*tree, None))
        except failures.Failure as failure:
            reason = f"in float64 it fails: {failure.reason}"
            raise self._failed(failure.status, step.name, reason, failure.line) from None
        kept = self.error, self.eager_error
        comparison = self._compare(out, expected, expected)
        self.error, self.eager_error = kept
        if not comparison.passed:
            raise self._failed("wrong", step.name, f"in float64: {comparison.reason}")
        how = "its kernels take it" if answer["launches"] else "it runs eager"
        self._passed(step.name, f"{how}: relative error {comparison.error:.2g}")

    def _precision(self) -> str:
        """The precision class of what came out: float32 that is no better than TF32 is called so."""
        floats = [leaf.example.dtype for leaf in self.inputs.leaves if leaf.example.dtype.is_floating_point]
        dtypes = floats or [p.dtype for p in self.module.parameters() if p.dtype.is_floating_point]
        if not dtypes:
            return ""
        short = {torch.float32: "fp32", torch.float64: "fp64", torch.float16: "fp16", torch.bfloat16: "bf16"}
        products = any(
            word in op for op in self.inputs.ops for word in ("mm", "matmul", "linear", "conv", "dot", "einsum")
        )
        if products and dtypes[0] is torch.float32 and 1e-4 < self.error < 0.1:
            return "tf32"
        return short.get(dtypes[0], str(dtypes[0]).removeprefix("torch."))


def _plainly(tree: Any) -> Any:
    tensors: list[torch.Tensor] = []
    return channel.rebuild(channel.describe(tree, tensors), tensors)


def _identical(a: Any, b: Any) -> bool:
    """Bit for bit the same values, NaN included."""
    mine = [t for t in pytree.tree_leaves(a) if isinstance(t, torch.Tensor)]
    theirs = [t for t in pytree.tree_leaves(b) if isinstance(t, torch.Tensor)]
    return len(mine) == len(theirs) and all(
        x.shape == y.shape and x.dtype == y.dtype and bool(((x == y) | ((x != x) & (y != y))).all())
        for x, y in zip(mine, theirs, strict=True)
    )
