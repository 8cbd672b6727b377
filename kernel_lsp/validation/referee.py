"""The referee: holds the right answers, asks the trial for its own, and says what the candidate is worth."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from kernel_lsp import errors, schema
from kernel_lsp.validation import (
    agreement,
    candidate_state,
    checks,
    conditions,
    device_asserts,
    exchange,
    failures,
    interpreter,
    launch_sizes,
    memory,
    plan,
    size_branches,
    sizes,
    state,
)
from kernel_lsp.validation.calls_outside import UnmarkedProcess
from kernel_lsp.validation.exchange import Answer
from kernel_lsp.validation.inputs import Inputs
from kernel_lsp.validation.oracle import Oracle
from kernel_lsp.validation.progress import Progress, time_over, verdict_of
from kernel_lsp.validation.trees import tensors_of
from kernel_lsp.validation.trial_connection import TrialConnection, malformed

if TYPE_CHECKING:
    from kernel_lsp.validation.recorded import RecordedShapes

#: seconds for the checks that were put off
FINISH_SECONDS = {"gpu": 4.0, "interpreter": 8.0}

#: what a call takes, in sizes of its inputs and results; the share of the free memory that may be taken beside a check
_OF_A_CALL, _SHARE = 4, 0.15


@dataclass
class Referee:
    """Holds the module and its right answers, asks the trial for the candidate's, and owns the verdict.

    It validates several candidates of one module, one after the other; ``progress`` is of the one at hand.
    """

    module: torch.nn.Module
    inputs: Inputs
    trial: TrialConnection
    mode: str  # "gpu" or "interpreter"
    emit: Callable[[str, Any], None]
    soft_seconds: float  # after a share of this, by the step's patience, a step is left out, and that is said
    independent: list[dict[str, Any]] = field(default_factory=list)  # class_schema.Independent
    training: bool = False  # the module is used in training mode
    progress: Progress = field(default_factory=lambda: Progress())  # of the candidate that is validated now
    unpinned: Inputs | None = (
        None  # the inputs with their dynamic dimensions, where the candidate is for the example's alone
    )
    of_timing: list[str] = field(default_factory=list)  # limits that timing met, whichever candidate was timed
    thorough: bool = False  # every check is made, whatever it takes
    unmarked: UnmarkedProcess | None = None  # where it is called without a trace of a validation
    recorded: RecordedShapes | None = None  # further shapes to time at
    check_bounds: bool = False  # the candidate is to raise where an index is out of range
    autotuned: dict[str, int] = field(default_factory=dict)  # autotuned kernels → how many configurations each has
    example_error: float = 0.0  # eager's own at the example's size
    moved_error: float = 0.0  # eager's own once the weights were moved: a scale of nearly nothing hides errors before
    rounds: bool | None = None  # whether torch takes TF32 at the example's size, where that is known
    precision: str = "strict"  # the setting that the candidate was asked for with
    crashed_in: tuple[str, ...] = ()  # checks in which this process crashed before, which are left out now
    sides: conditions.Sides = field(default_factory=lambda: conditions.Sides())
    explained: float = 0.0  # the largest relative error that this precision was seen to explain
    lends: bool = False  # tensors go to the trial in lent device memory
    began: float = 0.0
    outputs: Any = None  # the module's answer to the example, without memory
    spent: dict[str, float] = field(default_factory=dict)  # part → seconds
    #: within its context no other process of kernel-lsp uses the device; raises Failure where others do all the time
    alone: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    #: called between two checks: others of ours that wait to time may do so; raises GpuTaken where they do all the time
    give_way: Callable[[], None] = lambda: None
    compiling: TrialConnection | None = None  # a trial that compiles while another one's candidate is checked
    other_work: str = ""  # what other programs did on the device within the last of these contexts
    waited: float = 0.0  # seconds for others to be done with the device
    result_bytes: int = 0  # of the module's results at the example's sizes
    #: done once, when the first candidate is loaded and before it is checked
    meanwhile: Callable[[], None] | None = None
    beyond: float | None = None  # microseconds that CUDA events show beyond the kernels between them, where known

    @property
    def eager_error(self) -> float:
        """Eager's own relative error, where it is not known for the very call: at the example's size, and with the weights as they are moved."""
        return max(self.example_error, self.moved_error)

    def verdict(self) -> schema.Verdict:
        """Run the checks, those that may wait only while time allows; stops at the first that fails.

        Raises:
            NotInterpretable: Triton's interpreter cannot run the candidate, as the first check shows.
            GpuOutOfMemory: this process lacks memory for a check that has to be made, or that an idle GPU has room for.
            GpuTaken: others keep the device for too long.
        """
        self.prepare()
        return self._whole()

    @property
    def held_to(self) -> str:
        """The precision by which answers are compared: the one asked for, strict where no product of float32 is rounded for it."""
        return self.precision if agreement.multiplies_float32(self) else "strict"

    def prepare(self) -> None:
        """Find out how tensors get to the trial, and have an oracle ready."""
        self.lends = exchange.supported(self.inputs.device)
        around = interpreter.on_the_cpu if self.mode == "interpreter" else contextlib.nullcontext
        self.oracle = Oracle(self.module, self.independent, self.training, around)
        if plan.compares(self.inputs):
            self.oracle.watching = lambda: conditions.watching(self)

    def finish(self) -> schema.Verdict:
        """Run what ``verdict`` put off until the times were known; the verdict with that.

        Raises:
            GpuOutOfMemory, GpuTaken: as ``verdict``.
        """
        steps, self.progress.deferred = self.progress.deferred, []
        return self._verdict(lambda: candidate_state.reload(self, steps), steps, FINISH_SECONDS[self.mode])

    def of_another(self, trial: TrialConnection) -> schema.Verdict:
        """The whole verdict on another candidate, on the same inputs: nothing is put off.

        Raises:
            GpuOutOfMemory, GpuTaken: as ``verdict``.
        """
        self.trial = trial
        self.progress = Progress(eager_error=self.progress.eager_error)
        return self._whole(at_once=True)

    def compile_ahead(self) -> None:
        """Have what the checks that were put off will launch compiled, while something else is done."""
        if self.mode == "gpu" and self.progress.deferred and self.has_room():
            with contextlib.suppress(failures.Failure):  # it is seen where it counts
                self.begin({"do": "precompile", "cases": candidate_state.launched(self, self.progress.deferred)})

    def has_room(self) -> bool:
        """Whether another trial can hold the weights and make its calls at the example's sizes beside what a check takes."""
        inputs = [leaf.example for leaf in self.inputs.leaves]
        taken = _OF_A_CALL * (sum(map(memory.size, inputs)) + self.result_bytes) + 2 * memory.of_state(self.module)
        return taken <= _SHARE * memory.free(inputs)

    def _whole(self, at_once: bool = False) -> schema.Verdict:
        small = self._small()
        self.progress.limits += self.oracle.limits
        if self.mode == "interpreter":
            self.progress.limits += plan.limits_of_interpreter(self.inputs, small)
        if self.inputs.computes_indices or plan.reads_by_index(self.inputs):
            self.progress.limits.append(plan.OUT_OF_RANGE)
        self.progress.limits += [f"{name} (the process that runs the module crashed there)" for name in self.crashed_in]
        steps = self._steps(small)
        if at_once:
            seconds = self.soft_seconds + FINISH_SECONDS[self.mode]
            return self._verdict(lambda: candidate_state.load(self, steps), steps, seconds)
        always = [step for step in steps if step.patience == plan.ALWAYS]
        return self._verdict(lambda: candidate_state.load(self, always), steps, self.soft_seconds, first=True)

    def _steps(self, small: dict[str, int]) -> list[plan.Step]:
        tried = small if self.mode == "interpreter" else self.inputs.example_sizes
        branches = size_branches.other_sides(self.trial.text(), self.inputs, tried, small)
        steps = plan.plan(self.inputs, self.mode, small, self.check_bounds, self.unmarked is not None, branches)
        steps += plan.beside_pinned(self.unpinned) if self.unpinned is not None else []
        decide = [step.inside or step.decoy or step.required for step in steps]  # no kernel is "ok" without these
        return [s for s, needed in zip(steps, decide, strict=True) if needed or s.name not in self.crashed_in]

    def _small(self) -> dict[str, int]:
        """Small sizes that the module takes; what it does not take is no fault of the example."""

        def takes(at: dict[str, int]) -> bool:
            try:
                raised = device_asserts.raised(self.inputs.device)
                with torch.no_grad(), state.unchanged(self.module), raised:
                    args, kwargs = self.inputs.example(at)
                    self.module.train(self.training)(*args, **kwargs)
                return True
            except Exception:
                return False

        return sizes.fitting(self.inputs, takes)

    @contextlib.contextmanager
    def spending(self, part: str) -> Iterator[None]:
        """Add what the context takes to the seconds of a part, but for waiting."""
        began, waited = time.monotonic(), self.waited
        try:
            yield
        finally:
            took = time.monotonic() - began - (self.waited - waited)
            self.spent[part] = round(self.spent.get(part, 0.0) + took, 3)

    def put_off(self, seconds: float) -> None:
        """Leave what it waited for the device out of what the checks and their parts take."""
        self.began += seconds
        self.progress.began += seconds
        self.waited += seconds

    def _verdict(
        self, begin: Callable[[], None], steps: list[plan.Step], seconds: float, first: bool = False
    ) -> schema.Verdict:
        """``first``: what there is no time for is put off, not left out."""
        self.began = time.monotonic()
        self.progress.check, self.progress.left = "", [step for step in steps if step.needed]
        status, reason, line = "ok", "", None
        try:
            with self.spending("load"):
                begin()
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            with self.spending("checks"), device_asserts.raised(self.inputs.device):
                self._run(steps, seconds, first)
        except failures.Failure as failure:
            status, reason, line = failure.status, failure.reason, failure.line
            if status == "not-interpretable" and self.mode == "interpreter" and first:
                raise errors.NotInterpretable(what=failure.reason) from None
            if status == "not-interpretable":  # it has been interpreted before, or runs on a GPU
                status = "crashed"
            if status == "timeout" and self.trial.stopped:  # which says nothing of the candidate but how far it got
                self.progress.checks = [check for check in self.progress.checks if check.passed]
                reason = time_over(self.progress)
        return verdict_of(self, status, reason, line)

    # what the trial is asked

    @contextlib.contextmanager
    def asking(
        self, message: dict[str, Any], tree: Any = None, expected: Any = None, names: tuple[str, ...] = ()
    ) -> Iterator[Answer]:
        """The trial's answer, to be looked at inside the context: its tensors may lie in memory that is lent.

        ``expected``: a tree of tensors of the shapes and dtypes that a right answer has.

        Raises:
            Failure: the candidate's own, or what its death or its silence means.
            torch.OutOfMemoryError: there is none to lend.
        """
        self.settle()
        if message["do"] == "call":
            candidate_state.rewind(self)
            message = message | {"attributes": sorted(self.oracle.moves)}
        began = time.monotonic()
        if not self.lends or not tensors_of(tree):
            self.trial.send(message, tree)
            room = sum(t.numel() * t.element_size() for t in tensors_of(expected))
            answer, result, metas = self._received(message["do"], room)
            took = time.monotonic() - began
            yield Answer(answer, result, metas, answer.get("mutated", []), answer.get("damaged", []), took)
            return
        loan = exchange.Loan(tree, exchange.expected_of(expected), list(names), self.inputs.device)
        try:
            self.trial.send(message | loan.message(), file=loan.block.file)
            answer, _, _ = self._received(message["do"], 0)
            try:
                result = loan.results(answer.get("described"), answer.get("metas") or [])
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError) as error:
                raise malformed(error) from None
            damaged = [*loan.damaged(), *answer.get("damaged", [])]
            called = message["do"] == "call"
            took = time.monotonic() - began
            yield Answer(answer, result, answer.get("metas") or [], loan.mutated() if called else [], damaged, took)
        finally:
            result = None
            loan.free()

    @contextlib.contextmanager
    def talking_to(self, trial: TrialConnection) -> Iterator[None]:
        """Ask another trial within the context."""
        before, self.trial = self.trial, trial
        try:
            yield
        finally:
            self.trial = before

    def ask(self, message: dict[str, Any], tree: Any = None) -> dict[str, Any]:
        """The trial's answer where no tensors are expected."""
        with self.asking(message, tree) as answer:
            return answer.message

    def begin(self, message: dict[str, Any]) -> None:
        """Have the trial do something that no tensors are expected of. What it says is heard in turn, before the next question."""
        self.trial.send(message)
        self.trial.owed.append(message["do"])

    def heard(self) -> dict[str, Any]:
        """The answer to the first of what ``begin`` began.

        Raises:
            Failure: as for an answer that is waited for at once, and where the trial was lost before all was begun.
        """
        if not self.trial.owed:
            raise failures.Failure("crashed", "its process ended before it was asked for all")
        return self._received(self.trial.owed.pop(0), 0)[0]

    def settle(self) -> None:
        """Wait for all that ``begin`` began.

        Raises:
            Failure: as ``heard``.
        """
        while self.trial.owed:
            self.heard()

    def _received(self, verb: str, room: int) -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
        """The trial's next answer.

        Raises:
            Failure: as ``TrialConnection.receive``, and where the trial says that the candidate changed what is not its own.
        """
        answer, tree, metas = self.trial.receive(verb, room)
        if answer.get("changed"):
            names = ", ".join(answer["changed"][:3])
            raise self.failed("cheating", "process", f"it changes what is not its own: {names}")
        return answer, tree, metas

    def passed(self, name: str, detail: str = "") -> None:
        """Note a check that the candidate has passed."""
        self.progress.checks.append(schema.Check(name, True, detail))

    def failed(self, status: str, name: str, reason: str, line: int | None = None) -> failures.Failure:
        """A failure to be raised, noted as a check."""
        self.progress.checks.append(schema.Check(name, False, reason))
        return failures.Failure(status, reason, line)

    # the checks

    def _launches_elsewhere(self, step: plan.Step) -> bool:
        """Whether the candidate launched nothing at sizes that were cut down, and does at others, which are noted."""
        if self.mode != "interpreter" or self.progress.launched or step.sizes == self.inputs.example_sizes:
            return False
        if launch_sizes.find(self) in (None, step.sizes):
            return False
        self.progress.launched = None
        self.progress.checks.clear()
        return True

    def _run(self, steps: list[plan.Step], seconds: float, first: bool) -> None:
        skipped: list[plan.Step] = []
        if not first:
            self.progress.skipped = []  # of those put off each is made or left out now, or not reached where one fails
        apart: list[plan.Step] = []  # in a process that begins while others go on
        for i, step in enumerate(steps):
            always = step.essential and not first
            self.progress.left = [one for one in (*skipped, *steps[i + 1 :], *apart) if one.needed]
            over = not always and time.monotonic() - self.began > seconds * step.patience
            over = over or not (step.needed or self.progress.leaves_time(self.trial.deadline))
            if not self.thorough and (over or (step.late and first)):
                skipped.append(step)
                if not first:
                    self.progress.skipped.append(step.name)
                continue
            if self.oracle.seed is not None and not step.seeded:
                continue
            if not apart and (
                self.compiling is None or not self.compiling.owed
            ):  # nothing else of this validation goes on
                self.give_way()
            self.emit("progress", {"stage": "check", "message": step.name, "fraction": i / len(steps)})
            if step.kind == "unmarked":
                apart.append(step)
            with self._at(step), self._memory_noted(step), self.spending(f"check: {step.name}"):
                if step.perturb:
                    self.oracle.perturb(step.perturb)
                    self.rounds = None  # a scale of nearly nothing may have hidden it
                    candidate_state.send_state(self)
                checks.check(self, step)
            if self.inputs.device.type == "cuda":  # what stops the device is told of in the check that it comes from
                torch.cuda.synchronize(self.inputs.device)
            if step.required and self._launches_elsewhere(step):
                small = sizes.small(self.inputs)
                if small == self.inputs.example_sizes and plan.CUT_DOWN in self.progress.limits:
                    self.progress.limits.remove(plan.CUT_DOWN)
                return self._run(self._steps(small), seconds, first)
        for step in apart:
            self.emit("progress", {"stage": "check", "message": step.name, "fraction": 1.0})
            self.progress.left = []
            with self._at(step), self._memory_noted(step):
                checks.finish(self, step)
        if first:
            self.progress.deferred = skipped
            self.progress.skipped = [step.name for step in skipped]

    @contextlib.contextmanager
    def _at(self, step: plan.Step) -> Iterator[None]:
        """Note which check is made within the context, since when, and what it takes, but for waiting for the device."""
        began, waited = time.monotonic(), self.waited
        self.progress.check, self.progress.began, self.progress.beyond = step.name, began, step.beyond
        yield
        self.progress.seconds.append(time.monotonic() - began - (self.waited - waited))

    @contextlib.contextmanager
    def _memory_noted(self, step: plan.Step) -> Iterator[None]:
        """Go on after the context where this process has no memory for a step, and say that it was not made.

        Raises:
            errors.GpuOutOfMemory: the step has to be made, or could be where other lanes of an evaluation leave the GPU alone.
        """
        try:
            yield
        except torch.OutOfMemoryError as error:
            on_the_device = [torch.empty(0, device=self.inputs.device)]
            there, needed = memory.text(memory.free(on_the_device)), checks.needed(self, step)
            if step.required or needed <= memory.free_alone(on_the_device):
                raise errors.GpuOutOfMemory(
                    device=str(self.inputs.device),
                    class_name=type(self.module).__name__,
                    needed=memory.text(needed),
                    there=there,
                    detail=str(error).splitlines()[0],
                ) from None
            self.progress.limits.append(f"{step.name}: not enough memory ({there} were left)")
