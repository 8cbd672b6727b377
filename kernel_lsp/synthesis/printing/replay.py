"""The second way to run a host plan: its launches replayed from a CUDA graph. What a file needs for that is written here.

The text depends on torch alone and is the same in every file but for the name of the logger and what torch's own operators
add to a signature. ``schedule/replay.py`` says which plans it is for.
"""

from __future__ import annotations

from .tensors import listed

#: As many parameters and buffers take longer to check than to look up: then a replay begins before the envelope is checked.
_MANY = 16

#: the paragraph of the file's docstring
ABOUT = """Replayed as a CUDA graph: the first call with some shapes captures the launches, later ones cost one launch. For each
of the last 8 sets of shapes it holds copies of the inputs, the results, and what lies between."""


def imports(*, ahead: bool, records: bool) -> list[str]:
    """The imports of standard modules that the text needs; as in ``definitions``."""
    also = [*(["import dataclasses"] if records else []), *(["import operator"] if ahead else [])]
    return [*also, "import logging", "import weakref"]


def _head(class_name: str, ahead: bool) -> str:
    reads = "\n_reads = weakref.WeakKeyDictionary()  # module -> weak references to what its last replay read"
    return f"""# A call replays the launches of the host function from a CUDA graph, which is captured once for
# each signature. The graph reads copies of the inputs, and parameters and buffers where they lie;
# its results are copied for the caller.
_MOST_GRAPHS = 8  # kept for a module on a device; the one that has not been used for longest makes room
_MOST_CAPTURES = 64  # where sizes or weights change more often than that, direct launches serve better
_LOG = logging.getLogger("kernel_lsp.{class_name}")
_NOT_YET = "no graph is kept for such shapes and weights: the call launches, and captures one"
_NO_MORE = f"no more graphs after {{_MOST_CAPTURES}}, since sizes or weights change that often"
_TOO_LARGE = "there was no memory for copies of the inputs"
_graphs = weakref.WeakKeyDictionary()  # module -> device -> [_Graphs]; not copied or saved with the module{reads if ahead else ""}"""


def _signature(held: str, settings: str) -> str:
    return f'''def _signature(inputs, held):
    """What a graph is captured for: the inputs' shapes, and where the other tensors lie."""
    return (*[x.shape for x in inputs], *[{held} for t in held]{settings})'''


def _class(changed: str, ahead: bool, packs: str) -> str:
    of_held = ", held, changed" if changed else ""
    counted = "\n        torch.autograd.graph.increment_version([held[i] for i in changed])" if changed else ""
    return f'''class _Graphs:
    """The graphs of one module on one device, which share memory: they run one after the other."""

    def __init__(self):
        """No graph yet."""
        self.captured = {{}}  # signature -> graph, its inputs, its results; the longest unused first
        self.latest = None
        self.captures = 0
        self.why = ""  # why no further graph is captured, in words
        self.too_large = None  # the signature for whose copies there was no memory
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()  # for copies and captures; what they allocate is reused on it alone
        self.done = torch.cuda.Event()  # nothing reads the copies any more, whichever stream that was on{_PACKED_STATE if packs else ""}

    def run(self, function, inputs, held{changed}):
        """The results of ``function(*inputs, *held)``, as tensors of the caller's own."""
        signature = _signature(inputs, held)
{_RUN_PACKED.format(of_held=of_held) if packs else _RUN.format(of_held=of_held)}
{_BEGIN.format(unpacked=_UNPACKED if packs else "") if ahead else ""}{_PACK.format(function=packs) if packs else ""}
    def replay(self, signature, inputs{", held, changed" if changed else ""}):
        """The results of a graph, which is the one used last from now on."""
        graph, copies, results = found = self.captured[signature]
        if found is not self.latest:
            self.latest = self.captured[signature] = self.captured.pop(signature)
        stream = torch.cuda.current_stream()
        stream.wait_event(self.done)
        for copy, x in zip(copies, inputs):
            copy.copy_(x)
        graph.replay(){counted}
        results = _copied(results)
        self.done.record(stream)
        return results

    def why_direct(self, inputs, held):
        """In words, why there is no graph for these tensors; None where there is one."""
        signature = _signature(inputs, held)
        if signature in self.captured:
            return None
        if self.captures == _MOST_CAPTURES:
            return self.why or _NO_MORE
        return _TOO_LARGE if signature == self.too_large else _NOT_YET

    def first(self, signature, function, inputs, held):
        """The results of launches, which are then captured; without a graph the log says why."""
        if self.captures == _MOST_CAPTURES:
            return function(*inputs, *held)
        self.captures += 1
        caller = torch.cuda.current_stream()
        self.stream.wait_stream(caller)
        self.stream.wait_event(self.done)
        try:
            # Outside of inference mode, so that the copies can be written to in every mode.
            with torch.inference_mode(False), torch.no_grad(), torch.cuda.stream(self.stream):
                copies = [torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x) for x in inputs]
        except torch.OutOfMemoryError:
            self.too_large = signature
            return function(*inputs, *held)
        finally:
            caller.wait_stream(self.stream)
        results = function(*copies, *held)  # Triton compiles now: it could not during the capture
        self.done.record(caller)
        self.capture(signature, function, copies, held)
        return results

    def capture(self, signature, function, copies, held):
        """Keep a graph of launches that read ``copies``. It launches nothing."""
        if len(self.captured) == _MOST_GRAPHS:
            del self.captured[next(iter(self.captured))]
        caller = torch.cuda.current_stream()
        generator = torch.cuda.default_generators[self.stream.device_index]
        before = generator.clone_state()
        self.stream.wait_stream(caller)
        self.stream.wait_event(self.done)
        try:
            with torch.inference_mode(False), torch.no_grad(), torch.cuda.stream(self.stream):
                graph = torch.cuda.CUDAGraph()
                graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
                try:
                    results = function(*copies, *held)
                finally:
                    graph.capture_end()
        except Exception as error:
            generator.graphsafe_set_state(before)  # else it would go on waiting for the end of the capture
            self.captures = _MOST_CAPTURES
            self.why = f"launches directly from now on, since a capture failed: {{error}}"
            _LOG.info(self.why)
            return
        finally:
            caller.wait_stream(self.stream)
        self.latest = self.captured[signature] = graph, copies, results
        if self.captures == _MOST_CAPTURES:
            _LOG.info(_NO_MORE)'''


_RUN = """        if signature not in self.captured:
            return self.first(signature, function, inputs, held)
        return self.replay(signature, inputs{of_held})"""

#: what is packed is ready where it is read, and read before it is packed anew, on any stream
_RUN_PACKED = """        self.pack(held)
        if signature in self.captured:
            return self.replay(signature, inputs{of_held})
        stream = torch.cuda.current_stream()
        stream.wait_event(self.done)
        try:
            return self.first(signature, function, inputs, (*held, *self.packed))
        finally:
            self.done.record(stream)"""

_PACKED_STATE = """
        self.marks = None  # of the weights that what is packed was computed from
        self.packed = []  # read by the graphs, so its memory stays"""

_PACK = '''
    def pack(self, held):
        """Pack the weights into the memory that the graphs read, unless they are as they were."""
        sources = [held[i] for i in _PACKED_FROM]
        if _unchanged(self.marks, sources):
            return
        self.marks, marks = None, _marks(sources)
        stream = torch.cuda.current_stream()
        with torch.inference_mode(False), torch.no_grad():
            made = {function}(*sources)
            if not self.packed:
                with torch.cuda.stream(self.stream):
                    self.packed = [torch.empty_like(new) for new in made]
                stream.wait_stream(self.stream)
            stream.wait_event(self.done)
            for packed, new in zip(self.packed, made):
                packed.copy_(new)
        self.done.record(stream)
        self.marks = marks
'''

#: what is packed belongs to other weights, or to their earlier values
_UNPACKED = """
        if not _unchanged(self.marks, [held[i] for i in _PACKED_FROM]):
            return None"""

#: beside the check of the envelope, which takes longer than all this
_BEGIN = '''
    def begin(self, inputs, held):
        """The results of a graph for these tensors, which no envelope was asked for; or None."""
        signature = _signature(inputs, held)
        if (found := self.captured.get(signature)) is None:
            return None
        if any(x.dtype != copy.dtype or x.device != copy.device for x, copy in zip(inputs, found[1])):
            return None{unpacked}
        return self.replay(signature, inputs)
'''

_AHEAD = '''def _begin(module, inputs):
    """Begin a replay for these inputs before the envelope is checked, which takes longer.

    Gives what the replay reads beside them, and its results, for ``_replayed`` to use if the
    envelope holds. None where none may begin.
    """
    if torch.compiler.is_compiling() or (reads := _reads.pop(module, None)) is None:
        return None
    held = [reference() for reference in reads]
    if any(t is None for t in held) or not all(type(x) in _PLAIN and x.device.type == "cuda" for x in inputs):
        return None
    if any(x.layout != torch.strided or x.is_nested for x in inputs):
        return None
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*inputs, *held)):
        return None
    if torch.jit.is_tracing() or torch._C._functorch.maybe_current_level() is not None:
        return None
    if torch.autograd.forward_ad._current_level >= 0:
        return None
    device = inputs[0].device
    if device.index != torch.cuda.current_device() or torch.cuda.is_current_stream_capturing():
        return None
    try:
        unused = _graphs[module][device]
        graphs = unused.pop()
    except LookupError:  # no graph yet, or another thread is using them
        return None
    try:
        return held, graphs.begin(inputs, held)
    finally:
        unused.append(graphs)'''


def _function(changed: str, ahead: bool, packs: str) -> str:
    direct = "function(*inputs, *held, *_packed(module, held))" if packs else "function(*inputs, *held)"
    begun = """
    if begun is not None and begun[1] is not None and all(map(operator.is_, begun[0], held)):
        _reads[module] = [weakref.ref(t) for t in held]
        return begun[1]"""
    noted = """
    _reads[module] = [weakref.ref(t) for t in held]"""
    return f'''def _replayed(module, function, inputs, held{changed}{", begun" if ahead else ""}):
    """``function(*inputs, *held)``, replayed where that is possible, else launched directly."""{begun if ahead else ""}
    device = inputs[0].device
    # A compiler, or a graph that the caller captures, takes the launches themselves.
    if torch.compiler.is_compiling() or device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return {direct}{noted if ahead else ""}
    on_devices = _graphs.setdefault(module, {{}})
    if device not in on_devices:
        on_devices.setdefault(device, [_Graphs()])
    try:
        graphs = on_devices[device].pop()
    except IndexError:  # another thread is using them
        return {direct}
    try:
        return graphs.run(function, inputs, held{changed})
    finally:
        on_devices[device].append(graphs)


def _why_direct(module, inputs, held):
    """In words, why a call in the envelope launches directly; None where it replays a graph."""
    device = inputs[0].device
    if device.type != "cuda":
        return f"CUDA graphs are for tensors on a GPU, and these are on {{device}}"
    if torch.cuda.is_current_stream_capturing():
        return "the caller captures a CUDA graph, which takes the launches themselves"
    try:
        return _graphs[module][device][0].why_direct(inputs, held)
    except KeyError:
        return _NOT_YET
    except IndexError:
        return "another thread is using the graphs"'''


_COPIED = '''def _copied(results):
    """The same with tensors of the caller's own: the next replay writes over those of the graph."""
    if isinstance(results, torch.Tensor):
        return results.clone()
    if isinstance(results, dict):
        return {name: _copied(result) for name, result in results.items()}
    if isinstance(results, (list, tuple)):
        make = getattr(results, "_make", type(results))  # of a named tuple
        return make(_copied(result) for result in results)
    return results'''

#: comes first: a dataclass may be a dict as well
_COPIED_RECORDS = """    if dataclasses.is_dataclass(results):
        names = [field.name for field in dataclasses.fields(results) if field.init]
        return type(results)(**{name: _copied(getattr(results, name)) for name in names})
    if isinstance(results, dict):"""

_SETTINGS = '''def _settings():
    """What torch's own operators go by beside their arguments; a graph has them as they were when it was captured."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return (
        matmul.fp32_precision,
        matmul.allow_fp16_reduced_precision_reduction,
        matmul.allow_bf16_reduced_precision_reduction,
        cudnn.conv.fp32_precision,
        cudnn.enabled,
        cudnn.deterministic,
        torch.are_deterministic_algorithms_enabled(),
    )'''


def begins_ahead(inputs: list[str], held: int, changed: list[int]) -> bool:
    """Whether a replay begins before the envelope is checked.

    ``inputs``: the Python of the host function's inputs, which has to be names, so that looking them up cannot fail. ``held``: how many
    parameters and buffers there are. ``changed``: places of buffers that a replay changes, which it may do in the envelope alone.
    """
    return held >= _MANY and not changed and all(name.isidentifier() for name in inputs)


def definitions(
    class_name: str, *, torch_calls: bool, strides: bool, changes: bool, ahead: bool, records: bool, packs: str
) -> list[str]:
    """The file's parts that replay.

    ``torch_calls``: the host function has some, which go by settings of torch. ``strides``: the envelope leaves open how parameters and
    buffers lie in memory. ``changes``: a replay raises the version counters of buffers. ``ahead``: it begins before the envelope is checked.
    ``records``: dataclasses are among the results. ``packs``: the function whose results are kept (``packed.py``); empty where there is none.
    """
    held = "(t.data_ptr(), t.stride())" if strides else "t.data_ptr()"
    changed = ", changed" if changes else ""
    parts = [
        _head(class_name, ahead),
        _signature(held, ", *_settings()" if torch_calls else ""),
        _class(changed, ahead, packs),
        _COPIED.replace("    if isinstance(results, dict):", _COPIED_RECORDS) if records else _COPIED,
        *([_AHEAD] if ahead else []),
        _function(changed, ahead, packs),
    ]
    return [*parts, _SETTINGS] if torch_calls else parts


def beginning(inputs: list[str]) -> str:
    """The expression in forward that begins a replay, given the Python of the host function's inputs."""
    return f"_begin(self, {listed(inputs)})"


def call(function: str, inputs: list[str], held: str, changed: list[int], begun: str) -> str:
    """The expression in forward that runs the host function, given the Python of its arguments.

    ``held``: of a tuple of parameters and buffers; ``changed``: places there of buffers of which a replay raises the version counter.
    ``begun``: of what ``beginning`` gave; empty where there is none.
    """
    also = f", {listed([str(place) for place in changed])}" if changed else f", {begun}" if begun else ""
    return f"_replayed(self, {function}, {listed(inputs)}, {held}{also})"
