"""What a file needs to keep packed weights from call to call: what depends on parameters and buffers alone, with the range noted of it.

Kept is what was made on the stream of the call, so that no stream has to wait for another. A weight counts as unchanged where it is the same
object in the same storage at the same address with the same version counter; dtype and shape the envelope has fixed. A storage is told by its
identity, which none gets again while a weak reference to it is there: ``module.half().float()`` leaves object and counter as they were. The text is the same in every file but for
the name of the function that packs, and where strides may differ.
"""

from __future__ import annotations

import textwrap

from kernel_lsp.packed_weights import METHOD

from .tensors import listed

IMPORT = "import weakref"

_ABOUT = """Asked for with keep_packed_weights: what depends on parameters and buffers alone ({}) is computed once and kept, and
computed anew after a parameter or buffer was replaced or changed. A change that does not move its version counter, such as one through
.data or by a fused optimizer, is not noticed: call {}() after it."""


def name_of(function: str) -> str:
    """The function that packs for the host function."""
    return f"{function}_packed"


def about(packed: list[str], width: int) -> list[str]:
    """The paragraph of the file's docstring; ``packed``: the names of what is kept."""
    most = 4
    names = ", ".join(packed[:most]) + (f" and {len(packed) - most} more" if len(packed) > most else "")
    return textwrap.wrap(_ABOUT.format(names, METHOD), width)


def definitions(function: str, places: list[int], *, strides: bool, replayed: bool) -> list[str]:
    """The file's parts that keep what ``function`` packs.

    ``places``: of its arguments among the module's tensors that the envelope gives. ``strides``: the envelope leaves open how one of them lies in
    memory. ``replayed``: the file has CUDA graphs, too, which are dropped with what they read.
    """
    stride, of, same = ("", "", "")
    if strides:
        stride, of, same = ", stride", ", t.stride()", " and stride == t.stride()"
    graphs = _GRAPHS if replayed else ""
    return [
        _HEAD.format(places=listed([str(place) for place in places])),
        _TEXT.format(function=function, stride=stride, of=of, same=same, graphs=graphs),
    ]


def argument(held: str) -> str:
    """The expression in forward for what the host function is given last; ``held``: the module's tensors."""
    return f"*_packed(self, {held})"


#: the method of the class, after the others
METHOD_TEXT = f'''

    def {METHOD}(self):
        """Drop what is kept of this module's weights: the next call packs them anew.

        Needed after a change that does not move a weight's version counter, such as one through ``.data`` or
        by a fused optimizer.
        """
        _forget(self)'''


#: graphs read what was packed
_GRAPHS = """
    for unused in _graphs.pop(module, {}).values():
        for graphs in unused:
            graphs.stream.wait_event(graphs.done)  # what it allocated can be taken again after that"""

_HEAD = """# What depends on parameters and buffers alone is kept from call to call, for each stream.
_PACKED_FROM = {places}  # the places of these among the module's tensors that the kernels read
_MOST_STREAMS = 4  # of one module; what was made first on another one goes
_kept = weakref.WeakKeyDictionary()  # module -> stream -> marks, what is packed; not copied or saved with the module"""

_TEXT = '''def _marks(sources):
    """What tells that a weight was replaced or changed; None where torch counts no changes, as of inference tensors."""
    if any(t.is_inference() for t in sources):
        return None
    weak = torch.multiprocessing.reductions.StorageWeakRef
    return [(weakref.ref(t), weak(t.untyped_storage()), t.data_ptr(), t._version{of}) for t in sources]


def _unchanged(marks, sources):
    """Whether the weights are those that were marked, with the values that they had then."""
    return marks is not None and all(
        reference() is t
        and storage.cdata == t.untyped_storage()._cdata
        and place == t.data_ptr()
        and version == t._version{same}
        for (reference, storage, place, version{stride}), t in zip(marks, sources)
    )


def _packed(module, held):
    """What the kernels read beside the module's tensors, from an earlier call on this stream or computed now."""
    sources = [held[i] for i in _PACKED_FROM]
    device = sources[0].device
    on_gpu = device.type == "cuda"
    # A compiler, or a graph that the caller captures, takes the launches themselves.
    if torch.compiler.is_compiling() or (on_gpu and torch.cuda.is_current_stream_capturing()):
        return {function}(*sources)
    stream = torch.cuda.current_stream(device) if on_gpu else device
    on_streams = _kept.setdefault(module, {{}})
    found = on_streams.get(stream)
    if found is not None and _unchanged(found[0], sources):
        return found[1]
    marks = _marks(sources)  # before the weights are read: a change from now on is seen by the next call
    packed = {function}(*sources)
    for other, (known, _) in list(on_streams.items()):
        if other == stream or marks is None or not _unchanged(known, sources):
            on_streams.pop(other, None)
    if marks is not None:
        for other in list(on_streams)[: max(0, len(on_streams) + 1 - _MOST_STREAMS)]:
            on_streams.pop(other, None)
        on_streams[stream] = marks, packed
    return packed


def _forget(module):
    """Drop what is kept of a module's weights."""
    _kept.pop(module, None){graphs}'''
