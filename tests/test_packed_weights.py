"""A kernel file's text tells whether it keeps packed weights, and so does all that shows a result."""

from pathlib import Path

from kernel_lsp import schema
from kernel_lsp.commands import report_table
from kernel_lsp.commands.run_jobs import Task
from kernel_lsp.jobs import Job
from kernel_lsp.packed_weights import LABEL, keeps
from kernel_lsp.report_page import headline
from kernel_lsp.server.model.class_state import ClassState
from kernel_lsp.server.text import one_line

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


def test_it_is_said_beside_each_result_of_such_a_kernel() -> None:
    verdict = schema.Verdict("ok", keeps_packed_weights=True)
    entry = schema.Validated(schema.Candidate(KEPT, "synthesizer"), verdict)
    report = schema.Report(schema.Target("", "Linear"), candidates=[entry], chosen=0)
    task = Task("linear.py::Linear", None, Job("1", "generate", report.target, Path("linear.py"), report=report))
    state = ClassState(verdict=verdict)

    def said() -> list[str]:
        return [one_line.speed(state), str(headline.mark(verdict)), report_table._result(task)]

    assert all(LABEL in text for text in said()), said()
    verdict.keeps_packed_weights = False
    assert not any(LABEL in text for text in said()), said()
