"""What fits: tokens into a context, weights into memory."""

from __future__ import annotations

import os

from kernel_lsp import errors

#: an answer gets at least so many tokens, or is not begun
LEAST_ANSWER = 256
#: bytes per parameter of the usual GGUF quantisations, from the sizes of KernelLLM's files (8.03e9 parameters)
GGUF = {"Q8_0": 1.06, "Q6_K": 0.82, "Q5_K_M": 0.71, "Q4_K_M": 0.61}
#: beginnings of text that prompts come with literally; tokenizers and servers add their own
BEGINNINGS = ("<|begin_of_text|>", "<s>", "<bos>")


def room(prompt_tokens: int, max_tokens: int, context: int | None) -> int:
    """How many tokens an answer may have: ``max_tokens``, or what the context leaves.

    Raises:
        PromptTooLong: the context leaves too few.
    """
    if context is None:
        return max_tokens
    left = context - prompt_tokens
    least = min(LEAST_ANSWER, max_tokens)
    if left < least:
        raise errors.PromptTooLong(tokens=prompt_tokens, context=context, least=least)
    return min(max_tokens, left)


def without_beginning(prompt: str, *literals: str | None) -> str:
    """The prompt without the literal begin-of-text at its head, and the whitespace before it; however many there are."""
    known = [literal for literal in (*BEGINNINGS[:1], *literals) if literal]
    while True:
        head = prompt.lstrip()
        found = next((literal for literal in known if head.startswith(literal)), None)
        if found is None:
            return prompt
        prompt = head[len(found) :]


def pull(model: str) -> str:
    """The command that fetches a model; what is a path has no name to fetch it by."""
    is_path = os.path.isabs(os.path.expanduser(model)) or os.path.exists(model) or model.endswith(".gguf")
    return f"kernel-lsp models pull {'NAME' if is_path else model}"


def in_words(size: float) -> str:
    """Bytes as "16.1 GB", "812 MB" or "3 kB"."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}" if size < 100 * unit else f"{size / unit:.0f} {name}"
    return f"{size / 1e3:.0f} kB"


def proposal(parameters: int, available: float, dtype_bytes: int | None = None) -> str:
    """What to do where a model of so many parameters does not fit."""
    if dtype_bytes == 4 and 2.2 * parameters <= available:
        return f"Set its dtype to bf16, which takes half of that ({in_words(2 * parameters)})."
    for name, size in GGUF.items():
        if 1.15 * size * parameters <= available:  # the rest is for the KV cache
            return f"A GGUF file quantised to {name} (about {in_words(size * parameters)}) would fit: use the generator llama-cpp."
    return "Free some memory, choose a smaller model, or use one that another machine serves (the generator openai)."
