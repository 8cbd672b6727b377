"""The Python in a model's answer: its blocks, and their statements as they stand, with their lines in the answer.

Everything here is linear in the answer's length, but for the parsing of what does not parse at once.
"""

from __future__ import annotations

import ast
import re
import symtable
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

_LONGEST = 200_000  # characters of an answer that are looked at
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_END = re.compile(
    r"<\|(?:eot_id|end_of_text|endoftext|im_end|eom_id|end)\|>|</s>|<end_of_turn>|<eos>|<｜end▁of▁sentence｜>"
)
_SPECIAL = re.compile(r"<\|[a-z_]{1,30}\|>")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`~]*)$")
_LATE_FENCE = re.compile(r".*?(```|~~~)(?:python|py)[ \t]*$", re.IGNORECASE)
#: languages of blocks that hold no kernel
_OTHER_LANGUAGES = {
    *("bash", "sh", "shell", "console", "zsh", "text", "txt", "output", "plaintext", "json", "yaml", "toml"),
    *("c", "cpp", "c++", "cuda", "diff", "markdown", "md", "latex", "ptx", "log"),
}
_CODE = re.compile(r"(?:@|import\s|from\s|def\s|class\s|async\s|if\s|for\s|while\s|with\s|try\s*:|[\w.]+\s*[=:\[(])")
_NAMED = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)[ \t]*[(:]", re.MULTILINE)
#: a line that goes on with the statement above although it is not indented
_GOES_ON = re.compile(r"[)\]}#]|(?:else|elif|except|finally)\b|(?:\"\"\"|''')")

_PLAIN = {
    **dict.fromkeys(
        "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
    ),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
}


@dataclass
class Statement:
    """A statement at the top of a block, or one that does not parse (``node`` is None, ``problem`` says why).

    ``text``: whole lines, with the comments right above; ``line``: of its first line in the answer; ``binds`` and
    ``uses``: names of the module.
    """

    node: ast.stmt | None
    text: str
    line: int
    binds: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    problem: str = ""
    problem_line: int = 0


@dataclass
class Block:
    """A part of an answer: what is in a fence, or between fences. ``closed``: it ends where a fence does."""

    lines: list[str]
    line: int  # of its first line in the answer
    fenced: bool
    language: str = ""
    closed: bool = True


def plain_text(text: str) -> str:
    """An answer without thoughts and special tokens, each line where it was; Unix line ends."""
    text = text[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n")
    kept, depth, at = [], 0, 0
    for mark in _THOUGHT.finditer(text):
        if not mark[1]:
            if not depth:
                kept.append(text[at : mark.start()])
                at = mark.end()
            depth += 1
        else:  # some models only write the closing one: what is before it is a thought, too
            if not depth:
                kept = ["\n" * sum(part.count("\n") for part in kept)]
            kept.append("\n" * text.count("\n", at, mark.end()))
            at, depth = mark.end(), 0
    kept.append("\n" * text.count("\n", at) if depth else text[at:])
    text = "".join(kept)
    for end in _END.finditer(text):
        if text[: end.start()].strip():
            text = text[: end.start()]
            break
    return _SPECIAL.sub("", text.replace("\ufeff", ""))


def blocks(text: str) -> list[Block]:
    """The blocks of an answer, those of other languages left out, in their order."""
    found = [Block([], 1, False)]
    fence = ""  # of the block that is open
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if fence:
            ends = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
            if not ends and line.rstrip().endswith(fence) and line.count(fence) == 1:
                found[-1].lines.append(line.rstrip()[: -len(fence)])
                ends = True
            if ends:
                fence = ""
                found.append(Block([], number + 1, False))
            else:
                found[-1].lines.append(line)
        elif mark:
            fence = mark[1]
            words = mark[2].split()
            found.append(Block([], number + 1, True, words[0].lower().strip("{}.") if words else ""))
        elif late := _LATE_FENCE.match(line):
            fence = late[1]
            found.append(Block([], number + 1, True))
        elif line.rstrip().endswith("```") and line.count("```") == 1:
            found[-1].lines.append(line.rstrip()[:-3])
            found.append(Block([], number + 1, False))
        else:
            found[-1].lines.append(line)
    found[-1].closed = False
    usable = [block for block in found if block.language not in _OTHER_LANGUAGES]
    return [block for block in usable if any(line.strip() for line in block.lines)]


def statements(block: Block, cut: bool) -> list[Statement]:
    """The statements of a block; ``cut``: it was broken off, so that its last statement is not whole.

    Where the block does not parse, each of its statements is looked at alone, and prose between them is passed over.
    """
    lines = textwrap.dedent("\n".join(block.lines)).split("\n")
    typed = _typed(lines)
    if not cut:
        rest = textwrap.dedent("\n".join(typed[1:])).split("\n")  # a first line that lost its indentation
        for attempt in (lines, typed, [typed[0].lstrip(), *rest]):
            tree = _parse("\n".join(attempt))
            if isinstance(tree, ast.Module):
                return _of_tree(tree, attempt, block.line)
    found = list(_one_by_one(typed, block.line, deep=True))
    if cut and found:
        last = found[-1]
        end = last.line + last.text.rstrip().count("\n")
        found[-1] = _broken(last.text, last.line, "the answer was cut off here", end)
    return found


def names(text: str) -> tuple[set[str], set[str]]:
    """The names of the module that a piece of it binds, and those that it uses.

    Raises:
        SyntaxError: the piece does not parse.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = symtable.symtable(text, "answer", "exec")
    binds = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    uses = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    waiting = top.get_children()
    while waiting:
        table = waiting.pop()
        uses |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        waiting += table.get_children()
    return binds, uses


def parsed_or_none(text: str) -> ast.Module | None:
    """The tree of a text; None if it does not parse."""
    tree = _parse(text)
    return tree if isinstance(tree, ast.Module) else None


def _parse(text: str) -> ast.Module | SyntaxError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(tree, "answer", "exec")  # sees more than the parser: a return outside a function
        return tree
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "it is nested too deeply")


def _of_tree(tree: ast.Module, lines: list[str], first: int) -> list[Statement]:
    """The statements of what parses; ``first`` is the line of ``lines[0]`` in the answer."""
    found = []
    before = 0  # lines that belong to the statements above
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=False):
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
        assert node.end_lineno is not None
        if start < before or (following is not None and following.lineno == node.end_lineno):
            text = ast.unparse(node)  # several statements on one line
        else:
            while start > before and lines[start - 1].startswith("#"):
                start -= 1
            text = "\n".join(lines[start : node.end_lineno])
        before = node.end_lineno
        binds, uses = names(text)
        found.append(Statement(node, text, first + start, binds, uses))
    return found


def _one_by_one(lines: list[str], first: int, deep: bool) -> Iterator[Statement]:
    """The statements of what does not parse as a whole. ``deep``: code may stand indented under a line of prose."""
    starts = _starts(lines)
    at = 0
    while at < len(starts):
        start, after = starts[at], at + 1
        tree, end = _parse_from(lines, starts, start, after)
        while isinstance(tree, SyntaxError) and "triple-quoted" in str(tree.msg) and after < len(starts):
            # What is in a string may look like the start of a statement.
            after = next((i for i in range(after, len(starts)) if _quotes(lines, starts, i)), len(starts)) + 1
            tree, end = _parse_from(lines, starts, start, min(after, len(starts)))
            if after > at + 40:
                break
        chunk = lines[start:end]
        if isinstance(tree, ast.Module):
            yield from _of_tree(tree, chunk, first + start)
            at = after
            continue
        at += 1
        chunk = lines[start : starts[at] if at < len(starts) else len(lines)]
        head = next((line for line in chunk if not line.startswith("#")), "")
        if _CODE.match(head):
            yield _broken("\n".join(chunk), first + start, _message(tree), first + start + (tree.lineno or 1) - 1)
        elif deep and len(chunk) > 1:
            inner = textwrap.dedent("\n".join(chunk[1:])).split("\n")
            yield from _one_by_one(inner, first + start + 1, deep=False)


def _parse_from(lines: list[str], starts: list[int], start: int, after: int) -> tuple[ast.Module | SyntaxError, int]:
    end = starts[after] if after < len(starts) else len(lines)
    return _parse("\n".join(lines[start:end])), end


def _quotes(lines: list[str], starts: list[int], i: int) -> bool:
    """Whether there are triple quotes in what the i-th start begins."""
    end = starts[i + 1] if i + 1 < len(starts) else len(lines)
    return any('"""' in line or "'''" in line for line in lines[starts[i] : end])


def _starts(lines: list[str]) -> list[int]:
    """Where a statement may begin: lines that are not indented, a decorator or the comments above it first."""
    at_margin = [bool(line) and not line[0].isspace() and not _GOES_ON.match(line) for line in lines]
    for i in range(len(lines) - 2, -1, -1):
        if lines[i].startswith("#"):
            at_margin[i] = at_margin[i + 1]
    found: list[int] = []
    above = ""  # the last line at the margin
    for i, line in enumerate(lines):
        if not at_margin[i]:
            continue
        follows = i > 0 and lines[i - 1].startswith("#") and at_margin[i - 1]
        if not above.startswith("@") and not follows:
            found.append(i)
        above = line
    return found


def _broken(text: str, line: int, problem: str, problem_line: int) -> Statement:
    named = set(_NAMED.findall(text)[:1])
    return Statement(None, text, line, named, set(), problem, problem_line)


def _message(error: SyntaxError) -> str:
    return str(error.msg or error).split("\n")[0]


def _typed(lines: list[str]) -> list[str]:
    """What was meant: plain spaces, dashes and quotes outside strings and comments, no tabs before a line."""
    lines = [line.replace("\t", "    ", len(line) - len(line.lstrip("\t"))) for line in lines]
    text = "\n".join(lines)
    if text.isascii():
        return lines
    written: list[str] = []
    quote, curly, comment = "", False, False
    i = 0
    while i < len(text):
        char = text[i]
        plain = _PLAIN.get(char, char)
        if char == "\n":
            comment = False
            quote = quote if len(quote) == 3 else ""
        elif comment:
            plain = char
        elif quote:
            if char == "\\":
                written.append(text[i : i + 2])
                i += 2
                continue
            if text.startswith(quote, i) or (curly and plain == quote):
                written.append(quote)
                i += len(quote)
                quote = ""
                continue
            plain = char
        elif plain in ("'", '"'):
            curly = char != plain
            quote = plain if curly or not text.startswith(plain * 3, i) else plain * 3
            written.append(quote)
            i += len(quote)
            continue
        elif char == "#":
            comment = True
        written.append(plain)
        i += 1
    return "".join(written).split("\n")
