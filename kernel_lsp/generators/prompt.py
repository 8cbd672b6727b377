"""What a language model is asked: one text for models that complete, messages for models that converse.

A completion model's template comes from its own ``kernelllm.py`` where there is one: parsed, never executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from kernel_lsp.class_schema import Subject
from kernel_lsp.generators.feedback import repair

__all__ = ["PLACE", "chat", "completion", "read_template", "repair"]

#: where the module goes in what ``read_template`` returns: no text file holds it
PLACE = "\0"

_BEGIN = re.compile(r"\s*<\|begin_of_text\|>")
#: ``{}``, ``{0}`` or ``{name}``, but not ``{{name}}``
_FIELD = re.compile(r"(?<!\{)\{([A-Za-z_]\w*|\d*)\}(?!\})")

_EXAMPLE_BEFORE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(64, 1000), torch.randn(64, 1000)]


def get_init_inputs():
    return []"""

_EXAMPLE_AFTER = """\
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sum_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # Each program adds BLOCK neighbouring elements.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # The last program reaches beyond the end: what is there is neither read nor written.
    inside = offsets < n
    a = tl.load(a_ptr + offsets, mask=inside)
    b = tl.load(b_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, a + b, mask=inside)


def launch_sum(a, b):
    # The kernel counts elements in memory, so they have to lie side by side.
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty_like(a)
    n = out.numel()
    sum_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return launch_sum(a, b)"""

_OWN = f"""\
You are an engineer who makes PyTorch modules faster by writing GPU kernels in Triton. You are given a module named \
Model and write one named ModelNew that computes the same.

Which operators you replace is up to you. You may replace one and leave the others to PyTorch, put several into a \
single kernel, or find an algorithm that needs less memory traffic, such as a softmax in one pass.

This is an example. The module given is

```python
{_EXAMPLE_BEFORE}
```

and the answer is

```python
{_EXAMPLE_AFTER}
```

The module that you are given is

```python
{PLACE}
```

Optimize Model with Triton kernels. Name the result ModelNew. Write real code that compiles and runs, not pseudocode; \
output the code alone, in one Python block, without tests and without other text.
"""

_CHAT = """\
Write Triton kernels for the forward of this PyTorch module, as fast as you can make them on one GPU.

```python
{source}
```

{notes}Answer with one Python block: imports, `@triton.jit` kernels, functions that launch them, and `class ModelNew(nn.Module)`. \
No tests, no example calls.

What ModelNew has to be, since it takes Model's place:
- The same constructor, and the same names and shapes in its state_dict: {state}. Simplest: copy Model's `__init__`.
- `forward({parameters})` returns tensors of the same shapes and dtypes as Model's, and changes none of its arguments.
- {precision} Softmax and the like subtract the maximum first.
{sizes}
{bounds}- Sizes need not be powers of two: mask every load and store at the edges; `tl.arange` and block sizes take powers of two.
- Tensors are contiguous CUDA tensors, on one device, without gradients; other calls never reach ModelNew.
- The grid has at most 2**31 - 1 programs in its first dimension and 65535 in the second and third.
- Only torch and triton are imported. The main work is done in Triton: no torch operator for it, not even as a fallback.
"""

#: the wish of each setting ``precision``; those that are not strict are for both kinds of prompt
_PRECISION = {
    "strict": "Numbers as accurate as eager's: accumulate in float32 and do not lower the precision (`tl.dot` of float32 needs "
    '`input_precision="ieee"`).',
    "tf32": "Products of float32 may be rounded to TF32 and are to be as fast as that allows: `tl.dot` with "
    '`input_precision="tf32"`, accumulated in float32. Everything else has to be as accurate as eager\'s.',
    "half": "Operands of float32 products may be rounded to float16 and are to be as fast as that allows: `tl.dot` of float16, "
    'accumulated in float32. Beyond 65504 float16 is infinite: take `input_precision="tf32"` for operands that large. '
    "Everything else has to be as accurate as eager's.",
}

#: the wish of ``bounds = "check"``, for both kinds of prompt
_BOUNDS = (
    "An index out of range has to raise IndexError before any kernel is launched, as Model's own operators raise: look at "
    "the smallest and the largest index in `forward`."
)


def read_template(text: str) -> str | None:
    """The prompt template in the source of a model's ``kernelllm.py``, with ``PLACE`` where the module goes.

    It is a string that speaks of ModelNew and has exactly one place: ``{}``, ``{name}``, the field of an f-string, or
    what a concatenation adds between its strings. Escaped braces (``{{``) are resolved where ``str.format`` would
    resolve them. A literal begin-of-text at its head is dropped, since hosts put that token there. None if there is
    no such string, or the text does not parse; of several the longest.
    """
    try:
        tree = ast.parse(text.lstrip("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [template for string in _strings(tree) if (template := _with_place(string)) and "ModelNew" in template]
    return _without_begin(max(found, key=len)) if found else None


def completion(source: str, template: str | None, check_bounds: bool = False, precision: str = "strict") -> str:
    """The prompt for a model that was trained on one template; with None, on a text of that structure.

    ``source`` defines Model, get_inputs and get_init_inputs. Braces in it stand for themselves. ``check_bounds``, and a
    ``precision`` that is not strict, add a comment to it: the template stays the one that the model knows.
    """
    if template is None:
        template = _OWN
    elif PLACE not in template:
        template = _without_begin(_with_place(template) or f"{template}\n{PLACE}\n")
    before, _, after = template.partition(PLACE)
    wishes = [_BOUNDS] if check_bounds else []
    wishes += [_PRECISION[precision]] if precision != "strict" else []
    return before + source.strip("\n") + "".join(f"\n\n# {wish}" for wish in wishes) + after


def chat(
    subject: Subject,
    notes: Sequence[str] = (),
    examples: Sequence[str] = (),
    check_bounds: bool = False,
    precision: str = "strict",
) -> list[dict[str, str]]:
    """The first messages of a conversation; one of the user alone, since some models know no other role at the start.

    ``notes``: what is known to be fast for such a module, on such a device (``kernel_lsp.knowledge``).
    ``examples``: kernels of like modules that were validated as correct, with what was measured.
    ``check_bounds``: a kernel that does not raise where an index is out of range is wrong. ``precision``: the setting.
    """
    varying = [condition.replace(" == ", " (in the example ") + ")" for condition in subject.exact]
    if varying:
        sizes = f"- These sizes vary from call to call: {', '.join(varying)}. All others are always as in the example."
    else:
        sizes = "- All sizes are always those of the example."
    text = _CHAT.replace("{state}", ", ".join(f"`{name}`" for name in subject.state) or "it is empty")
    known = "\n\n".join(["What is known of such kernels:", *notes]) + "\n\n" if notes else ""
    if examples:
        known += "\n\n".join(["Kernels of like modules that were validated as correct before:", *examples]) + "\n\n"
    text = text.replace("{notes}", known)
    text = text.replace("{parameters}", ", ".join(["self", *subject.parameters])).replace("{sizes}", sizes)
    text = text.replace("{precision}", _PRECISION[precision])
    text = text.replace("{bounds}", f"- {_BOUNDS}\n" if check_bounds else "")
    return [{"role": "user", "content": text.replace("{source}", subject.source.strip("\n"))}]


def _without_begin(template: str) -> str:
    head = _BEGIN.match(template)
    return template[head.end() :] if head else template


def _strings(tree: ast.AST) -> Iterator[str | list[str]]:
    """The strings in a file; as parts where something comes between them."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
            yield _parts(node)
            if isinstance(node, ast.BinOp):
                waiting += [operand for operand in _operands(node) if not isinstance(operand, ast.Constant)]
        else:
            waiting += ast.iter_child_nodes(node)


def _operands(node: ast.expr) -> list[ast.expr]:
    """What a chain of additions adds, from left to right."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _parts(node: ast.expr) -> list[str]:
    """The strings of an f-string or a chain of additions; one more than there are other things between them."""
    pieces = node.values if isinstance(node, ast.JoinedStr) else _operands(node)
    parts = [""]
    for piece in pieces:
        if isinstance(piece, ast.Constant) and isinstance(piece.value, str):
            parts[-1] += piece.value
        else:
            parts.append("")
    return parts


def _with_place(string: str | list[str]) -> str | None:
    """A string with ``PLACE`` in its one place for a module; None if it has none, or several."""
    if isinstance(string, list):
        if len(string) > 1:
            return PLACE.join(string) if len(string) == 2 else None
        string = string[0]
    if PLACE in string:
        return None
    places = list(_FIELD.finditer(string))
    nameless = [place for place in places if not place[1]]
    if len(places) > 1 and nameless:  # names in braces may belong to an f-string in the worked example
        places = nameless
    if len(places) > 1:  # an empty dictionary is not alone on its line
        places = [p for p in places if string[: p.start()].endswith("\n") and string[p.end() :].startswith("\n")]
    if len(places) != 1:
        return None
    before, after = string[: places[0].start()], string[places[0].end() :]
    if _is_format(string):
        before, after = (part.replace("{{", "{").replace("}}", "}") for part in (before, after))
    return before + PLACE + after


def _is_format(string: str) -> bool:
    """Whether ``str.format`` with one value takes the string."""
    try:
        string.format("", **{place[1]: "" for place in _FIELD.finditer(string) if place[1] and not place[1].isdigit()})
    except (ValueError, LookupError, AttributeError):
        return False
    return True
