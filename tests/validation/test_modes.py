from __future__ import annotations

from torch import nn

from kernel_lsp.validation import modes


def test_a_part_of_a_module_in_eval_mode() -> None:
    module = nn.Sequential(nn.Dropout(), nn.Linear(2, 2))
    modes.put(module, True, "within")
    assert [m.training for m in module.modules()] == [True, False, False]
    modes.put(module, True, "itself")
    assert [m.training for m in module.modules()] == [False, True, True]
    assert modes.may_differ(module) and not modes.may_differ(nn.Dropout())
