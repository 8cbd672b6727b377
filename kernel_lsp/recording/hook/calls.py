"""``nn.Module.__call__`` with a note of the call.

Not a global forward hook: those send every call of every module through the slow path of ``nn.Module._call_impl``, make
torch.compile warn, and stand in its graphs. Dynamo takes the ``__call__`` that it finds when it is imported for the
plain one and goes straight to ``forward`` as ever; its frame is one that Dynamo is told to skip, as it skips torch's.

After the first calls of a class only some are looked at: so many that all of this takes about ``SHARE`` of the time.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from . import counts, describing, finding, writing

SHARE = 0.002  # of the program's time that looking at calls may take
FIRST = 32  # calls of a class that are all looked at
LONGEST_STRIDE = 1 << 14
MOST_PENDING = 256  # pairs of CUDA events that are not read yet
MOST_FRAMES = 16  # that are searched for a constructor


class _Thread(threading.local):
    def __init__(self) -> None:
        self.stack: list[counts.Class] = []  # the calls that this thread is in


class Recorder:
    """What was seen in this process. ``stopped``: it turned out not to be one that is recorded."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.classes: dict[type, counts.Class] = {}
        self.inits: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.pending: deque[tuple[counts.Shape, Any, Any]] = deque()
        self.spare: list[Any] = []  # CUDA events
        self.began = time.perf_counter()
        self.spent = 0.0
        self.samples = 0
        self.stopped = False

    def learn(self, cls: type) -> counts.Class:
        """The entry of a class that is met for the first time."""
        room = len(self.classes) < counts.MOST_CLASSES
        entry = finding.entry_of(cls, self.config, room)
        if self.stopped:
            entry.next = sys.maxsize
        if room or not entry.tracked:
            self.classes[cls] = entry
        return entry

    def stop(self) -> None:
        """Look at nothing from now on."""
        self.stopped = True
        for entry in self.classes.values():
            entry.next = sys.maxsize

    def to_json(self) -> list[dict[str, Any]]:
        """An entry for each class with calls whose shapes were kept, read from what is known by now."""
        self.collect()
        return [entry.to_json() for entry in list(self.classes.values()) if entry.calls and (entry.shapes)]

    def note_init(self, module: Any) -> None:
        """Keep the constructor's arguments, which the frame of ``__init__`` still holds."""
        entry = self.classes.get(type(module)) or self.learn(type(module))
        if not entry.tracked or self.stopped:
            return
        found = None
        frame: Any = sys._getframe(2)
        for _ in range(MOST_FRAMES):
            if frame is None:
                break
            code = frame.f_code
            if code.co_name == "__init__" and code.co_varnames and frame.f_locals.get(code.co_varnames[0]) is module:
                found = frame
            frame = frame.f_back
        made = _constructed_with(found) if found is not None else {"args": [], "kwargs": {}}
        number = entry.init(made)
        if number is not None:
            self.inits[module] = number

    def before(
        self, entry: counts.Class, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[counts.Shape, Any] | None:
        """The shape that a call belongs to, with a CUDA event at its beginning; None where it is not to be noted."""
        import torch

        cuda = torch.cuda.is_initialized()
        if (cuda and torch.cuda.is_current_stream_capturing()) or torch._C._get_tracing_state():
            return None
        try:
            key: Any = describing.key_of(args, kwargs)
        except describing.Varying:
            return None
        if not entry.tracked:
            shape = entry.shape(key, lambda: {"args": [], "kwargs": {}})
        else:
            modes = _modes(module)
            init = self.inits.get(module)
            key = (init, modes, key)

            def described() -> dict[str, Any]:
                trained = any(p.requires_grad for p in module.parameters())
                return {"init": init, "modes": list(modes), "trained": trained, **describing.describe(args, kwargs)}

            shape = entry.shape(key, described)
            shape.note_numbers(describing.numbers(args, kwargs))
        weight = entry.calls - entry.last
        entry.last = entry.calls
        shape.calls += weight
        if entry.envelope is not None and not entry.envelope(module, *args, **kwargs):
            shape.outside += weight
        event = self._event() if cuda else None
        return shape, event

    def after(
        self, entry: counts.Class, noted: tuple[counts.Shape, Any], stack: list[counts.Class], seconds: float
    ) -> None:
        """Keep the time of a call that has returned. A GPU's is read later, so as not to wait for it."""
        shape, start = noted
        shape.host.add(seconds)
        if start is not None:
            self.pending.append((shape, start, self._event()))
            self.collect()

    def place(self, entry: counts.Class, shape: counts.Shape, stack: list[counts.Class], weight: int) -> None:
        """Count ``weight`` calls as outermost ones or as nested in their own class; ``stack``: the classes whose calls are under way."""
        if not stack:
            shape.root_calls += weight
        elif entry in stack:
            shape.nested_calls += weight

    def collect(self) -> None:
        """Read the CUDA events that have come to pass."""
        while self.pending:
            shape, start, end = self.pending[0]
            if not end.query():
                if len(self.pending) > MOST_PENDING:
                    self.pending.popleft()
                    continue
                return
            self.pending.popleft()
            shape.device.add(start.elapsed_time(end) / 1e3)
            self.spare += [start, end]

    def next_sample(self, entry: counts.Class) -> None:
        """Choose which call of a class to look at next, by how much time looking has taken so far."""
        if entry.calls < FIRST:
            entry.next = entry.calls + 1
            return
        elapsed = time.perf_counter() - self.began
        if self.spent > SHARE * elapsed:
            # Some call is looked at about twice a second whatever that takes: what was seen is written then.
            rare = int(entry.calls / elapsed * len(self.classes) / 2)
            entry.stride = max(min(entry.stride * 2, LONGEST_STRIDE, rare), 1)
        else:
            entry.stride = max(entry.stride // 2, 1)
        # Not at regular intervals: a model's layers come in a rhythm.
        entry.next = entry.calls + random.randint(1, 2 * entry.stride - 1)

    def _event(self) -> Any:
        import torch

        event = self.spare.pop() if self.spare else torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def install(config: dict[str, Any]) -> Recorder:
    """Put the noting ``__call__`` and ``__init__`` in place, once torch is imported."""
    import torch

    recorder = Recorder(config)
    module_class: Any = torch.nn.Module
    original = module_class.__call__
    module_class.__call__ = _noting_call(recorder, original)
    module_class.__init__ = _noting_init(recorder, module_class.__init__)
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None and getattr(dynamo, "unpatched_nn_module_call", None) is original:
        dynamo.unpatched_nn_module_call = module_class.__call__  # type: ignore[attr-defined]
    writing.install(recorder)
    return recorder


def _noting_call(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    is_compiling = torch.compiler.is_compiling
    classes, thread = recorder.classes, _Thread()
    clock = time.perf_counter
    set_eval_frame = _set_eval_frame()

    def _wrapped_call_impl(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        entry = classes.get(type(self))
        stack = thread.stack
        if entry is None:
            entry = learn(type(self))
        if (stack and not entry.tracked) or entry.wrapper:
            return original(self, *args, **kwargs)
        entry.calls += 1
        if entry.calls >= entry.next:
            return sampled(entry, stack, self, args, kwargs)
        stack.append(entry)
        try:
            return original(self, *args, **kwargs)
        finally:
            stack.pop()

    def learn(cls: type) -> counts.Class:
        callback = set_eval_frame(None)
        try:
            return recorder.learn(cls)
        finally:
            set_eval_frame(callback)

    def sampled(
        entry: counts.Class, stack: list[counts.Class], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        began = clock()
        callback = set_eval_frame(None)  # else Dynamo would compile what follows, inside a compiled call
        noted = None
        try:
            recorder.next_sample(entry)
            weight = entry.calls - entry.last
            noted = recorder.before(entry, self, args, kwargs)
            if noted is not None:
                recorder.place(entry, noted[0], stack, weight)
        except Exception as error:
            writing.complain(error)
        finally:
            set_eval_frame(callback)
        stack.append(entry)
        started = clock()
        try:
            result = original(self, *args, **kwargs)
        finally:
            ended = clock()
            stack.pop()
        if noted is not None:
            callback = set_eval_frame(None)
            try:
                recorder.after(entry, noted, stack, ended - started)
                writing.write_if_due(recorder)
            except Exception as error:
                writing.complain(error)
            finally:
                set_eval_frame(callback)
        recorder.samples += 1
        recorder.spent += started - began + clock() - ended
        return result

    for function in (_wrapped_call_impl, learn, sampled):
        _skip(function)
    return _wrapped_call_impl


def _noting_init(recorder: Recorder, original: Callable[..., None]) -> Callable[..., None]:
    import torch

    is_compiling = torch.compiler.is_compiling

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not is_compiling():
            with contextlib.suppress(Exception):  # a frame without what is looked for, a module that cannot be hashed
                recorder.note_init(self)

    return __init__


def _set_eval_frame() -> Callable[[Any], Any]:
    """Dynamo's callback for frames: sets another one and returns the one before."""
    try:
        from torch._C._dynamo.eval_frame import set_eval_frame
    except ImportError:
        return lambda callback: None
    return set_eval_frame


def _skip(function: Any) -> None:
    """Have Dynamo leave this function's frames alone, but not what they call.

    As ``torch._dynamo.decorators.skip`` does, without its import, which takes seconds.
    """
    try:
        from torch._C._dynamo import eval_frame

        leave, go_on = eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(leave, go_on))
    except (ImportError, AttributeError):  # a torch in which this goes otherwise: compiled calls are seen as a whole
        pass


def _modes(module: Any) -> tuple[str, ...]:
    """What beside the arguments decides what a call does: ``("training", "grad", "autocast bfloat16")``."""
    import torch

    modes = []
    if module.training:
        modes.append("training")
    if torch.is_inference_mode_enabled():
        modes.append("inference")
    elif torch.is_grad_enabled():
        modes.append("grad")
    kind = "cuda" if torch.cuda.is_initialized() else "cpu"
    if torch.is_autocast_enabled(kind):
        modes.append("autocast " + str(torch.get_autocast_dtype(kind)).removeprefix("torch."))
    return tuple(modes)


def _constructed_with(frame: Any) -> dict[str, Any]:
    """The arguments of the ``__init__`` that a frame runs."""
    code, values = frame.f_code, frame.f_locals
    positional = code.co_varnames[1 : code.co_argcount]
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = code.co_argcount + code.co_kwonlyargcount
    args = [values[name] for name in positional]
    kwargs = {name: values[name] for name in keyword}
    if code.co_flags & 0x04:  # *args
        args += list(values[code.co_varnames[rest]])
        rest += 1
    if code.co_flags & 0x08:  # **kwargs
        kwargs |= values[code.co_varnames[rest]]
    return describing.describe(tuple(args), kwargs)
