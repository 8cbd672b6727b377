"""A digest of a class's source that a kernel file can compute itself: this function's text is copied into it."""


def source_digest(text: str, name: str) -> str:
    """A digest of the class ``name`` and of what its file defines and it names, without comments, docstrings and layout."""
    import re
    import zlib

    text = re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)
    blocks = {
        b: re.sub(r"(async )?(def |class )?(\w*).*", r"\3", b, flags=re.DOTALL) for b in re.split(r"\n(?=\w)", text)
    }
    found, words = set[str](), {name}
    while more := {block for block, bound in blocks.items() if bound in words} - found:
        found |= more
        words.update(*(re.findall(r"\w+", block) for block in more))
    bare = re.sub(r"[\s,()\"'\\\\]", "", "".join(sorted(found)))
    return f"{zlib.crc32(bare.encode()):08x}"
