"""The second way to run a host plan: its launches replayed from a CUDA graph. What a file needs for that is written here.

The text depends on torch alone and is the same in every file but for the name of the logger and what torch's own operators
add to a signature. ``schedule/replay.py`` says which plans it is for.
"""

from __future__ import annotations

#: standard modules that the text needs
IMPORTS = ("import logging", "import weakref")

#: the paragraph of the file's docstring
ABOUT = """Replayed as a CUDA graph: the first call with some shapes captures the launches, later ones cost one launch. For each
of the last 8 sets of shapes it holds copies of the inputs, the results, and what lies between."""


def _head(class_name: str) -> str:
    return f"""# A call replays the launches of the host function from a CUDA graph, which is captured once for
# each signature. The graph reads copies of the inputs, and parameters and buffers where they lie;
# its results are copied for the caller.
_MOST_GRAPHS = 8  # kept for a module on a device; the one that has not been used for longest makes room
_MOST_CAPTURES = 64  # where sizes or weights change more often than that, direct launches serve better
_LOG = logging.getLogger("kernel_lsp.{class_name}")
_graphs = weakref.WeakKeyDictionary()  # module -> device -> [_Graphs]; not copied or saved with the module"""


def _class(held: str, settings: str, changed: str) -> str:
    counted = "\n        torch.autograd.graph.increment_version([held[i] for i in changed])" if changed else ""
    return f'''class _Graphs:
    """The graphs of one module on one device, which share memory: they run one after the other."""

    def __init__(self):
        """No graph yet."""
        self.captured = {{}}  # signature -> graph, its inputs, its results; the longest unused first
        self.latest = None
        self.captures = 0
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()  # for copies and captures; what they allocate is reused on it alone
        self.done = torch.cuda.Event()  # nothing reads the copies any more, whichever stream that was on

    def run(self, function, inputs, held{changed}):
        """The results of ``function(*inputs, *held)``, as tensors of the caller's own."""
        # The copies of the inputs are contiguous, so strides of the inputs are not in it.
        signature = (*[x.shape for x in inputs], *[{held} for t in held]{settings})
        if (found := self.captured.get(signature)) is None:
            return self.first(signature, function, inputs, held)
        if found is not self.latest:
            self.latest = self.captured[signature] = self.captured.pop(signature)
        graph, copies, results = found
        stream = torch.cuda.current_stream()
        stream.wait_event(self.done)
        for copy, x in zip(copies, inputs):
            copy.copy_(x)
        graph.replay(){counted}
        results = _copied(results)
        self.done.record(stream)
        return results

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
            _LOG.info("launches directly from now on, since a capture failed: %s", error)
            return
        finally:
            caller.wait_stream(self.stream)
        self.latest = self.captured[signature] = graph, copies, results
        if self.captures == _MOST_CAPTURES:
            _LOG.info("captures no more graphs after %d, since sizes or weights change that often", self.captures)'''


def _function(changed: str) -> str:
    return f'''def _replayed(module, function, inputs, held{changed}):
    """``function(*inputs, *held)``, replayed where that is possible, else launched directly."""
    device = inputs[0].device
    # A compiler, or a graph that the caller captures, takes the launches themselves.
    if torch.compiler.is_compiling() or device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return function(*inputs, *held)
    on_devices = _graphs.setdefault(module, {{}})
    if device not in on_devices:
        on_devices.setdefault(device, [_Graphs()])
    try:
        graphs = on_devices[device].pop()
    except IndexError:  # another thread is using them
        return function(*inputs, *held)
    try:
        return graphs.run(function, inputs, held{changed})
    finally:
        on_devices[device].append(graphs)'''


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


def definitions(class_name: str, *, torch_calls: bool, strides: bool, changes: bool) -> list[str]:
    """The file's parts that replay.

    ``torch_calls``: the host function has some, which go by settings of torch. ``strides``: the envelope leaves open how parameters and
    buffers lie in memory. ``changes``: a replay raises the version counters of buffers.
    """
    held = "(t.data_ptr(), t.stride())" if strides else "t.data_ptr()"
    changed = ", changed" if changes else ""
    parts = [
        _head(class_name),
        _class(held, ", *_settings()" if torch_calls else "", changed),
        _COPIED,
        _function(changed),
    ]
    return [*parts, _SETTINGS] if torch_calls else parts


def call(function: str, inputs: list[str], held: str, changed: list[int]) -> str:
    """The expression in forward that runs the host function, given the Python of its arguments.

    ``held``: of a tuple of parameters and buffers; ``changed``: places there of buffers of which a replay raises the version counter.
    """
    also = f", {as_tuple([str(place) for place in changed])}" if changed else ""
    return f"_replayed(self, {function}, {as_tuple(inputs)}, {held}{also})"


def as_tuple(items: list[str]) -> str:
    """Python for a tuple of expressions."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
