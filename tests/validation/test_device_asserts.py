"""What would stop a CUDA context raises beforehand, where torch's CPU kernels raise, and nowhere else."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from kernel_lsp.validation import device_asserts

X = torch.randn(5, 4)
AT = torch.tensor


def classes(last):
    return AT([0, 1, 2, 3, last])


CALLS = {
    "embedding, beyond": lambda: F.embedding(AT([5]), X),
    "embedding, last": lambda: F.embedding(AT([4]), X),
    "embedding, negative": lambda: F.embedding(AT([-1]), X),
    "embedding with a largest norm, negative": lambda: F.embedding(AT([-1]), X.clone(), max_norm=1.0),
    "embedding_bag, beyond": lambda: F.embedding_bag(AT([[5, 1]]), X),
    "embedding_bag, bags that follow one another": lambda: F.embedding_bag(AT([0, 1, 4]), X, AT([0, 2, 2])),
    "embedding_bag, a bag that begins beyond": lambda: F.embedding_bag(AT([0, 1, 4]), X, AT([0, 4])),
    "embedding_bag, a bag that begins before the one ahead": lambda: F.embedding_bag(AT([0, 1, 4]), X, AT([0, 2, 1])),
    "embedding_bag, a start that is not 0": lambda: F.embedding_bag(AT([0, 1, 4]), X, AT([1, 2])),
    "index, ends": lambda: X[AT([-5, 4])],
    "index, beyond": lambda: X[AT([5])],
    "index, before the start": lambda: X[AT([-6])],
    "index, second dimension": lambda: X[:, AT([4])],
    "index, mask": lambda: X[X > 0],
    "index, mask and index": lambda: X[AT([True] * 5), AT([1] * 5)],
    "index, put": lambda: X.clone().index_put_((AT([9]),), AT(1.0)),
    "index_select, beyond": lambda: X.index_select(0, AT([7])),
    "index_add, beyond": lambda: X.clone().index_add_(0, AT([9]), X[:1]),
    "gather, beyond": lambda: X.gather(1, AT([[4]])),
    "gather, last": lambda: X.gather(1, AT([[3]])),
    "scatter, negative": lambda: X.clone().scatter_(1, AT([[-1]]), 1.0),
    "take, beyond": lambda: X.take(AT([20])),
    "take, from the end": lambda: X.take(AT([-20])),
    "cross_entropy, beyond": lambda: F.cross_entropy(X, classes(4)),
    "cross_entropy, ignored": lambda: F.cross_entropy(X, classes(-100)),
    "cross_entropy, negative": lambda: F.cross_entropy(X, classes(-1)),
    "nll_loss in two dimensions, beyond": lambda: F.nll_loss(X[:, :, None, None], torch.full((5, 1, 1), 9)),
    "multi_margin_loss, beyond": lambda: F.multi_margin_loss(X, classes(4)),
    "multilabel_margin_loss, ended": lambda: F.multilabel_margin_loss(X, AT([[1, -1, 0, 0]] * 5)),
    "multilabel_margin_loss, beyond": lambda: F.multilabel_margin_loss(X, AT([[4, -1, 0, 0]] * 5)),
    "max_unpool2d, beyond": lambda: F.max_unpool2d(X[None], AT([[[99] * 4] * 5]), 1),
    "multinomial, negative": lambda: torch.multinomial(AT([-1.0, 2.0]), 1),
    "multinomial": lambda: torch.multinomial(AT([1.0, 2.0]), 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_raises_where_the_cpu_does(name):
    try:
        CALLS[name]()
        refused = False
    except (IndexError, RuntimeError):
        refused = True
    with device_asserts._Raising():  # as on a GPU: on the CPU ``raised`` leaves it to torch
        if refused:
            with pytest.raises((IndexError, ValueError), match=r"out of bounds|probability|offsets|Class values"):
                CALLS[name]()
        else:
            CALLS[name]()
