# /// kernel-lsp
# source = "rms_norm.py::RMSNorm"
# class = "RMSNorm"
# generator = "synthesizer"
# note = "6 of 6 ops in Triton"
# fingerprint = "sha256:d12c2200ec37ef3f1f4ec1f21b767af5eea76412dd703ac21c76f158e68be3e0"
# body = "sha256:806c525f62c7eb91edb9086c3b3bebd3b21494202174ba96a356e0297513dabe"
# code = "sha256:61fc78380d3fb6ffb4238a657478b4169cc5c8c7a10c21d609b9e6586bc3e732"
# envelope.inputs = ["x: float32[x_0, x_1, 4096]"]
# envelope.sizes = ["x_0: 2 or more, 8 in the example", "x_1: 2 or more, 1024 in the example"]
# envelope.inputs-from = "get_inputs()"
# envelope.init = "4096"
# verdict = {status = "ok", mode = "gpu", passed = 31, error = 1.92e-07, eager_error = 1.86e-07, precision = "fp32"}
# not-checked = "the strides of its output; the number of processes was not limited while the kernel was validated"
# validated = {by = "0.1.0", at = "2026-11-25T12:12:11Z", on = "NVIDIA H100 80GB HBM3", torch = "2.11.0+cu130", triton = "3.6.0"}
# measured = {at = "2026-11-25T12:12:01+00:00", inputs = "float32[8, 1024, 4096]", roofline = 0.997}
# microseconds = {eager = [372.85, 371.9, 373.89, 50], compiled = [90.304, 89.76, 90.816, 50], kernel = [90.48, 89.856, 90.944, 50]}
# rest = "every check and limit: the validation report; verdicts over time: kernel-lsp history rms_norm.py::RMSNorm"
# ///
"""RMSNorm as one Triton kernel.

    out = x * rsqrt(mean(x * x, dim=2) + 1e-06) * weight

One program takes one row of 4096 columns and keeps it in registers.
Least traffic for the example inputs: 134.2 MB read (x, weight), 134.2 MB written.
"""

import torch
import triton
import triton.language as tl

try:
    from ..rms_norm import RMSNorm
except ImportError:  # the folder of rms_norm.py is on sys.path
    from rms_norm import RMSNorm

_DEVICE = "cpu" if triton.knobs.runtime.interpret else "cuda"
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MOST_ELEMENTS = 2**31 - 2**16  # offsets are 32-bit


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    """out = x * rsqrt(mean(x * x, dim=2) + 1e-06) * weight.

    One program takes one row of 4096 columns and keeps it in registers.
    """
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols)
    mean = tl.sum(x * x, axis=0) / n_cols
    weight = tl.load(weight_ptr + cols)
    tl.store(out_ptr + row * n_cols + cols, x * tl.rsqrt(mean + 1e-06) * weight)


def rms_norm(x, weight):
    """Run the kernel. The tensors have to be in the envelope of the class below."""
    x = x.contiguous()
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    rms_norm_kernel[(x.shape[0] * x.shape[1],)](
        x, weight, out, n_cols=4096, BLOCK=4096, num_warps=4
    )
    return out


class RMSNormTriton(RMSNorm):
    """RMSNorm: the kernel where it was validated, eager elsewhere."""

    def forward(self, x):
        held = self._in_envelope(x)
        if not held:
            _log_why_not(self, x)
            return super().forward(x)
        return rms_norm(x, *held)

    def _in_envelope(self, x):
        """The module's tensors that kernels read where they were validated for this, else False."""
        try:
            return (
                not torch.jit.is_tracing()
                and type(x) in _PLAIN
                and (device := x.device).type == _DEVICE
                and (device.index is None or device.index == torch.cuda.current_device())
                and x.dtype == torch.float32
                and x.resolve_neg() is x
                and x.dim() == 3
                and x.shape[2] == 4096
                and 0 < x.numel() < _MOST_ELEMENTS
                and type(weight := self._parameters["weight"]) in _PLAIN
                and weight.device == device
                and weight.dtype == torch.float32
                and weight.shape == (4096,)
                and weight.is_contiguous()
                and self.eps == 1e-06
                and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))
                and torch.autograd.forward_ad._current_level < 0
                and not torch.is_autocast_enabled(_DEVICE)
                and (weight,)
            )
        except (AttributeError, LookupError):
            return False  # constructed otherwise, it may lack what is looked at

    def why_not(self, x):
        """In words, the first condition that keeps a call from the kernel; None where the kernel runs."""
        found = _first_that_fails(self, x)
        return found and found[1]


# From here on: why a call runs the module's own forward. No result depends on it.
_conditions, _logged = [], set()
_MEANINGS = {
    "torch.is_grad_enabled()": "gradients are required; wrap inference in torch.no_grad()",
    "torch.is_autocast_enabled(": "autocast is on",
    "._forward_hooks": "a submodule has a forward hook",
    "not self.training": "the module is in training mode; call eval()",
    ".type == _DEVICE": "expected tensors on _DEVICE",
    ".index == torch.cuda.current_device()": "the tensors are on another GPU than torch.cuda.current_device()",
    ".device == device": "expected all tensors on one device",
    " in _PLAIN": "expected a torch.Tensor or torch.nn.Parameter itself",
    "_current_level <": "forward-mode derivatives are taken",
    ".data_ptr() !=": "a tensor that the kernel changes shares its memory with one that it reads",
    ".resolve_neg() is": "an argument's elements are stored negated; call resolve_neg() on it",
    ".resolve_conj() is": "an argument's elements are stored conjugated; call resolve_conj() on it",
    "torch.jit.is_tracing()": "torch.jit.trace records the module's own forward",
}


def _first_that_fails(kernel, *args, **kwargs):
    """The first condition of the envelope that fails for a call, and that in words; None where all hold."""
    import ast
    import inspect
    import re
    import textwrap

    def plain(node):  # without the names that are given on the way
        return re.sub(r"\((\w+) := [^()]*\)", r"\1", ast.unparse(node))

    envelope = type(kernel)._in_envelope
    if not _conditions:
        tree = ast.parse(textwrap.dedent(inspect.getsource(envelope)))
        test = next(node.value for node in ast.walk(tree) if isinstance(node, ast.Return))
        for part in getattr(test, "values", [test]):
            _conditions.append((part, plain(part), compile(ast.Expression(part), "", "eval")))
    call = inspect.signature(envelope).bind(kernel, *args, **kwargs)
    call.apply_defaults()
    names = {**globals(), **call.arguments}
    for part, text, code in _conditions:
        try:
            if eval(code, names):
                continue
        except (AttributeError, LookupError):
            return text, f"expected {text}, but the module lacks what is looked at"
        words = next((_MEANINGS[sign] for sign in _MEANINGS if sign in text), f"expected {text}")
        words = re.sub(r"\b_[A-Z_]+\b", lambda name: str(names.get(name[0], name[0])), words)
        if words.startswith("expected ") and isinstance(part, ast.Compare):
            side = plain(part.comparators[0] if isinstance(part.left, ast.Constant) else part.left)
            value = eval(side, names)
            words += f", but {side} is {'a tensor' if isinstance(value, torch.Tensor) else value}"
        return text, words
    return None


def _log_why_not(kernel, *args, **kwargs):
    """Log at INFO why a call runs the module's own forward, once for each reason."""
    if torch.compiler.is_compiling():
        return
    import logging

    log = logging.getLogger("kernel_lsp.RMSNorm")
    if log.isEnabledFor(logging.INFO) and (found := _first_that_fails(kernel, *args, **kwargs)):
        if found[0] not in _logged:
            _logged.add(found[0])
            log.info("eager: %s", found[1])


def source_digest(text: str, name: str) -> str:
    """A digest of the class ``name`` and of what its file defines and it names, without comments, docstrings and layout."""
    import re
    import zlib

    text = re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)
    blocks = {
        b: re.sub(r"(async )?(def |class )?(\w*).*", r"\3", b, flags=re.DOTALL)
        for b in re.split(r"\n(?=\w)", text)
    }
    found, words = set[str](), {name}
    while more := {block for block, bound in blocks.items() if bound in words} - found:
        found |= more
        words.update(*(re.findall(r"\w+", block) for block in more))
    bare = re.sub(r"[\s,()\"'\\\\]", "", "".join(sorted(found)))
    return f"{zlib.crc32(bare.encode()):08x}"


def _warn_if_changed(validated):
    """Warn where the class is no longer the one with which the kernel was validated."""
    import inspect
    import logging
    import os
    import sys

    module = sys.modules.get(RMSNorm.__module__)
    if os.environ.get("KERNEL_LSP_CHECK_SOURCE") != "0" and os.path.exists(
        getattr(module, "__file__", None) or ""
    ):
        if source_digest(inspect.getsource(module), "RMSNorm") != validated:
            logging.getLogger("kernel_lsp.RMSNorm").warning(
                "RMSNorm has changed since its kernel was validated: kernel-lsp generate writes it anew"
            )


_warn_if_changed("a13fe594")  # KERNEL_LSP_CHECK_SOURCE=0 turns it off
