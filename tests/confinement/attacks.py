"""A module and a right kernel for it, which runs ``attack()`` when it is imported by a candidate's process."""

MODULE = """
import os, sys, time
import ctypes, socket, subprocess, signal, threading, mmap, shutil, tempfile
import torch
from torch import nn

def tell(*words):
    print("attack:", *words, file=sys.stderr, flush=True)

def attack():
    try:
        BODY
        tell("done")
    except BaseException as error:
        tell(type(error).__name__, error)

class Scale(nn.Module):
    def forward(self, x):
        return x * 2.0 + 1.0

def get_inputs():
    return [torch.randn(8, 64)]
"""

KERNEL = """
import torch, triton, triton.language as tl
import victim
from victim import Scale

victim.attack()

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2.0 + 1.0, mask=at < n)

class ScaleTriton(Scale):
    def forward(self, x):
        if torch.is_grad_enabled() and x.requires_grad:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        scale_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
        return y
"""
