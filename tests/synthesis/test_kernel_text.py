"""What a reader of a kernel does not have to read: loads of what was loaded, masks that cannot fail, values that are not used."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.synthesis.golden import FOLDER
from tests.synthesis.text_checks import loaded_twice

FILES = sorted(FOLDER.glob("*.txt"))


def kernels(path: Path) -> Iterator[tuple[ast.Module, ast.FunctionDef]]:
    """The kernels of a file, and its whole text."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list):
            yield tree, node


def names(node: ast.AST, kind: type[ast.expr_context]) -> Counter[str]:
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind))


def launched_with(tree: ast.Module, kernel: ast.FunctionDef) -> list[dict[str, int]]:
    """The numbers that each launch of a kernel gives it."""
    found = []
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript)):
        if ast.unparse(call.func.value) == kernel.name:  # type: ignore[attr-defined]
            given = {a.arg: v for a, v in zip(kernel.args.args, call.args, strict=False)}
            given |= {k.arg: k.value for k in call.keywords if k.arg}
            found.append({k: v.value for k, v in given.items() if isinstance(v, ast.Constant) and type(v.value) is int})
    return found


def certain(tree: ast.Module, kernel: ast.FunctionDef) -> Iterator[str]:
    """Comparisons that come out the same for every lane: of numbers, of a thing with itself, of a range with its own size."""
    ranges = {
        n.targets[0].id: n.value
        for n in ast.walk(kernel)
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and "tl.arange" in ast.unparse(n.value)
    }
    for compared in (n for n in ast.walk(kernel) if isinstance(n, ast.Compare)):
        left, right = compared.left, compared.comparators[0]
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            yield ast.unparse(compared)
        if isinstance(compared.ops[0], (ast.Lt, ast.GtE)) and ast.unparse(left) == ast.unparse(right):
            yield ast.unparse(compared)
        whole = re.fullmatch(
            r"tl\.arange\(0, (\w+)\)(\[:, None\]|\[None, :\])?", ast.unparse(ranges.get(ast.unparse(left), left))
        )
        if not isinstance(compared.ops[0], ast.Lt) or whole is None:
            continue
        for sizes in launched_with(tree, kernel):
            size, end = (sizes.get(t, int(t) if t.isdigit() else None) for t in (whole[1], ast.unparse(right)))
            if size is not None and end is not None and size <= end:
                yield ast.unparse(compared)


def masks_of_sums(kernel: ast.FunctionDef) -> Iterator[str]:
    """Masks that compare a sum of an index and a number with a number, where the index alone could be compared."""
    given = {argument.arg for argument in kernel.args.args}
    loads = (n for n in ast.walk(kernel) if isinstance(n, ast.Call) and ast.unparse(n.func) == "tl.load")
    masks = (keyword.value for load in loads for keyword in load.keywords if keyword.arg == "mask")
    for compared in (n for mask in masks for n in ast.walk(mask) if isinstance(n, ast.Compare)):
        left, right = compared.left, compared.comparators[0]
        if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Add | ast.Sub):
            continue
        of_index = not names(left, ast.Load).keys() <= given
        if of_index and isinstance(left.right, ast.Constant) and isinstance(right, ast.Constant):
            yield ast.unparse(compared)


def taken_before(kernel: ast.FunctionDef) -> Iterator[str]:
    """Lower bounds in what ``tl.where(a < n, …, …)`` takes last: there no ``a`` is less than ``n``."""
    chosen = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and ast.unparse(n.func) == "tl.where"]
    for call in chosen:
        condition, inner = call.args[0], call.args[2]
        if isinstance(condition, ast.Compare) and isinstance(condition.ops[0], ast.Lt):
            never = f"{ast.unparse(condition.left)} >= {ast.unparse(condition.comparators[0])}"
            if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "tl.where":
                yield from [never] if never in ast.unparse(inner.args[0]) else []


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_kernel_does_nothing_that_comes_to_nothing(path: Path) -> None:
    for tree, kernel in kernels(path):
        assert not [*loaded_twice(kernel.body)]
        assert not [*certain(tree, kernel)]
        assert not [*masks_of_sums(kernel)]
        assert not [*taken_before(kernel)]
        read = names(kernel, ast.Load)
        assert not [name for name in names(kernel, ast.Store) if name not in read and name != "_"]


def test_what_comes_to_nothing_would_be_found(tmp_path: Path) -> None:
    text = """
@triton.jit
def a_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask & (7 >= 6))
    x2 = tl.load(x_ptr + cols, mask=mask & (7 >= 6))
    tl.store(out_ptr + cols, x)

def a(x):
    a_kernel[(1,)](x, x, 64, BLOCK=64)
"""
    path = tmp_path / "a.txt"
    path.write_text(text)
    ((tree, kernel),) = kernels(path)
    assert [*loaded_twice(kernel.body)] == ["tl.load(x_ptr + cols, mask=mask & (7 >= 6))"]
    assert sorted(certain(tree, kernel)) == ["7 >= 6", "7 >= 6", "cols < n"]
    assert [name for name in names(kernel, ast.Store) if name not in names(kernel, ast.Load)] == ["x2"]


@pytest.mark.parametrize("name", ["filled_step_by_step", "filled_in_many_steps"])
def test_pieces_of_a_concatenation_share_their_loads(name: str) -> None:
    for _, kernel in kernels(FOLDER / f"{name}.txt"):
        loads = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and ast.unparse(n.func) == "tl.load"]
        addresses = Counter(ast.unparse(load.args[0]) for load in loads)
        assert set(addresses.values()) == {1}
        assert len(ast.get_docstring(kernel) or "") < 700


@pytest.mark.parametrize("name", ["adaptive_pool1d", "adaptive_pool2d"])
def test_an_index_is_computed_once(name: str) -> None:
    ((_, kernel),) = kernels(FOLDER / f"{name}.txt")
    values = Counter(ast.unparse(n.value) for n in ast.walk(kernel) if isinstance(n, ast.Assign))
    assert set(values.values()) == {1}
    assert "_index <" not in ast.unparse(kernel)  # no window is longer than the longest


def test_what_does_not_vary_along_a_tile_is_loaded_once_for_all_of_it() -> None:
    for _, kernel in kernels(FOLDER / "float16_preactivated.txt"):
        assert "0 * cols" not in ast.unparse(kernel)


def test_what_does_not_vary_along_a_window_is_loaded_before_the_loop_over_it() -> None:
    ((_, kernel),) = kernels(FOLDER / "rows_depthwise_of_a_norm.txt")
    loops = [node for node in kernel.body if isinstance(node, ast.For)]
    inside = {name for loop in loops for name in names(loop, ast.Load) if name.endswith("_ptr")}
    assert inside == {"x_ptr", "conv_weight_ptr", "conv_bias_ptr", "out_ptr"}
    assert {"norm_weight_ptr", "norm_running_var_ptr"} <= names(kernel, ast.Load).keys()


def test_a_bound_that_an_earlier_piece_took_would_be_found() -> None:
    text = "@triton.jit\ndef a(x, y, z):\n    return tl.where(x < 3, y, tl.where((x >= 3) & (x < 5), y, z))"
    (kernel,) = ast.parse(text).body
    assert isinstance(kernel, ast.FunctionDef)
    assert [*taken_before(kernel)] == ["x >= 3"]
