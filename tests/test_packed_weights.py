"""A kernel file's text tells whether it keeps packed weights."""

from kernel_lsp.packed_weights import keeps

KEPT = '''class LinearTriton(Linear):
    def forward(self, input):
        return linear(input, *_packed(self, held))

    def forget_packed_weights(self):
        """Drop what is kept."""
        _forget(self)
'''


def test_the_method_tells_it_and_nothing_else() -> None:
    assert keeps(KEPT) and keeps(KEPT.replace("(self):", "(self) -> None:"))
    assert not keeps(KEPT.partition("    def forget")[0])
    assert not keeps("# def forget_packed_weights(self): is not there\n")
