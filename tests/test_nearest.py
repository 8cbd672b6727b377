"""What a message says of a word that is not known."""

from __future__ import annotations

from kernel_lsp import nearest


def test_the_nearest_word_is_named_where_one_is_near():
    assert nearest.hint("chek", ["check", "serve"]) == "; did you mean check?"
    assert nearest.hint("xyzzy", ["check", "serve"]) == "" == nearest.hint("xyzzy", [])


def test_how_alike_the_words_have_to_be_can_be_said():
    assert nearest.nearest("kernel", ["kernel-lsp"]) == "kernel-lsp"
    assert nearest.nearest("kernel", ["kernel-lsp"], cutoff=0.9) == ""
