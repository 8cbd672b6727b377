"""Memory that two processes see: on a GPU through CUDA's interprocess handles, on the host through a memory file.

Always allocated by the referee and lent to the trial, never the other way round: the referee maps nothing that a
candidate made. A block comes from the driver and not from torch's caching allocator, since a handle opens the whole
allocation that an address lies in, and the allocator keeps other tensors there.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import mmap
import os
from typing import Any

import torch

from kernel_lsp.validation import memory
from kernel_lsp.validation.trees import PLAIN

_HANDLE_BYTES = 64


class Unsupported(RuntimeError):
    """The driver, or the machine, has no interprocess memory."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_byte * _HANDLE_BYTES)]


class _Address:
    """What torch wraps without a copy (the CUDA array interface)."""

    def __init__(self, pointer: int, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (pointer, False), "version": 3}


def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _check(status: int, what: str) -> None:
    if status == 2:  # CUDA_ERROR_OUT_OF_MEMORY
        raise torch.OutOfMemoryError(f"CUDA out of memory: {what}")
    if status:
        raise Unsupported(f"{what} failed with CUDA error {status}")


#: ``CU_LIMIT_PERSISTING_L2_CACHE_SIZE`` (CUDA driver API)
_PERSISTING = 6


def cache_set_aside() -> int | None:
    """Bytes of L2 that this process keeps for persisting accesses; None where no driver says so.

    Waits for what the current stream has to do.
    """
    if not torch.cuda.is_initialized():
        return None
    count = ctypes.c_size_t()
    try:
        torch.cuda.current_stream().synchronize()  # makes sure that there is a context
        status = _driver().cuCtxGetLimit(ctypes.byref(count), _PERSISTING)
    except (OSError, AttributeError, RuntimeError):  # the last one while a stream is captured
        return None
    return None if status else count.value


def _wrap(pointer: int, count: int, device: torch.device) -> torch.Tensor:
    return torch.as_tensor(_Address(pointer, count), device=device)


class Block:
    """``count`` bytes that the referee lends. ``data``: the bytes as a uint8 tensor; ``key``: what the trial opens.

    ``file``: on the host, the descriptor that goes with the message.
    """

    file: int | None = None

    def __init__(self, count: int, device: torch.device) -> None:
        self.count = count
        self.device = device
        if device.type == "cuda":
            pointer, handle = ctypes.c_uint64(), _Handle()
            torch.cuda.synchronize(device)
            driver = _driver()
            _check(driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(count)), f"allocating {count} bytes")
            self._pointer = pointer
            try:
                _check(driver.cuIpcGetMemHandle(ctypes.byref(handle), pointer), "sharing memory between processes")
            except Unsupported:
                driver.cuMemFree_v2(pointer)
                raise
            self.data = _wrap(pointer.value, count, device)
            self.key = {"handle": bytes(handle).hex(), "bytes": count}
        else:
            self.file = os.memfd_create("block", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.file, count)
            # Its size stays: a file that was cut would end this process where it reads.
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self._map = mmap.mmap(self.file, count)
            self.data = torch.frombuffer(self._map, dtype=torch.uint8)
            self.key = {"bytes": count}

    def free(self) -> None:
        """Give the memory back. Nothing that was made of ``data`` may be used any more."""
        del self.data
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            _driver().cuMemFree_v2(self._pointer)
        elif self.file is not None:
            os.close(self.file)


class Lent:
    """A block as the trial has it, until ``close``."""

    def __init__(self, key: dict[str, Any], file: int | None, device: torch.device) -> None:
        self.device = device
        count = key["bytes"]
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()  # makes sure that there is a context
            self._pointer = ctypes.c_uint64()
            handle = _Handle.from_buffer_copy(bytes.fromhex(key["handle"]))
            status = _driver().cuIpcOpenMemHandle_v2(ctypes.byref(self._pointer), handle, 1)
            _check(status, "opening shared memory")
            self.data = _wrap(self._pointer.value, count, device)
        else:
            assert file is not None
            self.data = torch.frombuffer(mmap.mmap(file, count), dtype=torch.uint8)
            os.close(file)

    def close(self) -> None:
        """Unmap it. Tensors of it that are kept, as by a module that remembers its input, get memory of their own before."""
        _move_out(self.data)
        del self.data
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            _driver().cuIpcCloseMemHandle(self._pointer)


#: what refers to a storage that nothing else keeps: its tensor, and the object that asks
_ALONE = 2
#: of the first byte that is copied, so that every dtype's elements keep their places
_ALIGNED = 512


def _move_out(block: torch.Tensor) -> None:
    """Move the tensors that lie in a block to memory of their own, which they share as they shared the block."""
    storage = block.untyped_storage()
    if torch._C._storage_Use_Count(storage._cdata) <= _ALONE:
        return
    kept = [one for one in gc.get_objects() if _lies_in(one, block) and one is not block]
    if not kept:
        return
    begin = min(_first_byte(one) for one in kept) // _ALIGNED * _ALIGNED
    end = max(_first_byte(one) + memory.span(one) for one in kept)
    try:
        copied = block[begin:end].clone().untyped_storage()
    except torch.OutOfMemoryError:  # then they can no longer be read, and the module's next call says so
        return
    for one in kept:
        with torch.inference_mode(one.is_inference()), torch.no_grad():
            moved = torch.empty(0, dtype=one.dtype, device=one.device)
            place = (_first_byte(one) - begin) // one.element_size()
            one.data = moved.set_(copied, place, one.shape, one.stride())


def _lies_in(one: object, block: torch.Tensor) -> bool:
    if type(one) not in PLAIN:
        return False
    assert isinstance(one, torch.Tensor)
    if one.device != block.device or one.layout != torch.strided:
        return False
    return bool(one.untyped_storage()._cdata == block.untyped_storage()._cdata)


def _first_byte(one: torch.Tensor) -> int:
    return int(one.storage_offset()) * one.element_size()
