"""Templates read from a model's own file, the prompts, and what a model is told of its candidate."""

import ast

import pytest

from kernel_lsp.class_schema import Specimen, Subject, TensorSpec
from kernel_lsp.generators import prompt
from kernel_lsp.schema import Candidate, Check, Device, Measurement, ShapeMeasurement, Timing, Validated, Verdict

MODULE = 'class Model(nn.Module):\n    table = {"a": {}, "b": "{x} {{y}}"}\n'
KNOWN = '''
"""A helper."""
import torch

PROMPT_TEMPLATE = """
<|begin_of_text|>You write kernels.

```
class ModelNew(nn.Module): ...
```

Optimize this:

```
{}
```

Name it ModelNew.
"""

class KernelLLM:
    def generate(self, code):
        return self.run(PROMPT_TEMPLATE.format(code))
'''


def written(text: str) -> str:
    template = prompt.read_template(text)
    assert template is not None
    return prompt.completion(MODULE, template)


def test_the_template_is_a_constant_of_the_file_without_its_begin_of_text():
    said = written(KNOWN)
    assert said.startswith("You write kernels.")
    assert f"```\n{MODULE}```\n\nName it ModelNew." in said
    assert "begin_of_text" not in said


@pytest.mark.parametrize(
    "text",
    [
        'T = "Write ModelNew for {code}: done"',
        'class K:\n    template = "Write ModelNew for {0}: done"',
        'def ask(code):\n    return f"Write ModelNew for {code}: done"',
        'def ask(code):\n    return "Write ModelNew for " + code + ": done"',
        'T = ("Write ModelNew " "for {}" ": done")',
        'T = "Write " + "ModelNew for {}" + ": done"',
        'S = "short {} ModelNew"\nT = "Write ModelNew for {code}: done"',
        '\ufeffT = "Write ModelNew for {}: done"',
    ],
)
def test_wherever_and_however_it_is_written(text):
    assert written(text) == f"Write ModelNew for {MODULE.strip()}: done"


def test_escaped_braces_are_resolved_where_str_format_would():
    assert written('T = "ModelNew {{a: 1}} {}"') == "ModelNew {a: 1} " + MODULE.strip()


def test_braces_of_code_stand_for_themselves():
    text = 'T = """ModelNew\ngrid = lambda meta: {"x": meta[{1}]}\nnames = {}\n```\n{}\n```\n"""\nprint(T.replace("{}", c))'
    said = written(text)
    assert 'lambda meta: {"x": meta[{1}]}\nnames = {}\n```\nclass Model' in said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def broken(:",
        'T = "no place, ModelNew"',
        'T = "{} and {} for ModelNew"',
        'T = "{} but another name"',
        'f"ModelNew {a} and {b}"',
        "x\0y",
        "(" * 5000,
    ],
)
def test_nothing_fits(text):
    assert prompt.read_template(text) is None


def test_the_file_is_not_executed(tmp_path):
    trace = tmp_path / "trace"
    assert prompt.read_template(f'open({str(trace)!r}, "w")\nT = "ModelNew {{}}"') is not None
    assert not trace.exists()


def test_without_a_template_there_is_one_of_our_own():
    said = prompt.completion(MODULE, None)
    assert said.count(MODULE.strip()) == 1
    assert "begin_of_text" not in said and "\0" not in said
    # The worked example is Python: a module, and its answer with a kernel.
    before, after = said.split("```python\n")[1:3]
    assert "def get_init_inputs" in before and "class Model(nn.Module)" in before
    tree = ast.parse(after.split("```")[0])
    assert [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)] == [
        "sum_kernel",
        "launch_sum",
        "ModelNew",
    ]


def test_a_conversation_begins_with_the_module_its_state_and_its_sizes():
    subject = Subject(
        MODULE, "m", "RMSNorm", ["x", "eps=1e-6"], ["x", "eps"], ["x"], [], ["weight"], [], ["x.shape[0] == 8"]
    )
    [message] = prompt.chat(subject)
    assert message["role"] == "user"
    for part in (MODULE, "`weight`", "forward(self, x, eps=1e-6)", "x.shape[0] (in the example 8)", "ModelNew"):
        assert part in message["content"]
    subject.state, subject.exact = [], []
    [message] = prompt.chat(subject)
    assert "it is empty" in message["content"] and "always those of the example" in message["content"]


def test_a_kernel_that_has_to_check_its_indices_is_asked_to():
    wish = "An index out of range has to raise IndexError"
    subject = Subject(MODULE, "m", "Words")
    [message] = prompt.chat(subject, check_bounds=True)
    assert f"\n- {wish}" in message["content"] and message["content"].count("{bounds}") == 0
    [bare] = prompt.chat(subject)
    assert wish not in bare["content"] and "{bounds}" not in bare["content"]
    for template in (None, prompt.read_template(KNOWN)):
        bare, asked = prompt.completion(MODULE, template), prompt.completion(MODULE, template, check_bounds=True)
        (said,) = [line for line in asked.splitlines() if wish in line]
        assert said.startswith("# ")  # it is among Python
        assert asked.replace(f"\n\n{said}", "") == bare


def test_a_conversation_holds_the_notes_that_fit():
    [bare] = prompt.chat(Subject(MODULE, "m", "RMSNorm"))
    [message] = prompt.chat(Subject(MODULE, "m", "RMSNorm"), ["One program a row.", "Subtract {the} maximum."])
    assert "known" not in bare["content"] and "{notes}" not in bare["content"]
    said = "What is known of such kernels:\n\nOne program a row.\n\nSubtract {the} maximum.\n\nAnswer with one Python block"
    assert said in message["content"]


SOURCE = "import torch\n\n\ndef kernel(x):\n    off = 3\n    y = tl.lod(x)\n    return y\n"
SPECIMEN = Specimen("RMSNorm", "m", "", "get_inputs()", [TensorSpec("x", [8, 4096], "float32")])


def told(verdict: Verdict, measurement: Measurement | None = None, **candidate: str) -> str:
    text = prompt.repair(
        Validated(Candidate(**({"source": SOURCE} | candidate), generator="m"), verdict, measurement), SPECIMEN
    )
    assert len(text) <= 3000
    return text


def test_a_compile_error_comes_with_its_line():
    said = told(Verdict("compile-error", "module 'tl' has no attribute 'lod'", 6))
    assert "no attribute 'lod'" in said
    assert "    y = tl.lod(x)  # <-- here" in said and "    off = 3\n" in said


def test_a_rejected_answer_is_quoted_from_the_answer():
    said = told(Verdict("rejected", "it does not parse: '(' was never closed", 2), source="", answer="a\nb = (\nc")
    assert "never closed" in said and "b = (  # <-- here" in said


def test_a_wrong_result_comes_with_place_amount_and_the_check():
    reason = "odd sizes, x 5×7: output[0, 3] is 2, in float64 it is 1: relative error 1"
    checks = [Check("example inputs", True, "fine"), Check("odd sizes", False, reason)]
    said = told(Verdict("wrong", reason, checks=checks, error=1e-7, eager_error=2e-7))
    assert reason in said and "“odd sizes”" in said and "It had passed: example inputs" in said


@pytest.mark.parametrize("status", ["crashed", "timeout", "out-of-memory", "cheating", "not-drop-in"])
def test_every_failure_says_its_reason(status):
    assert "because of this" in told(Verdict(status, "because of this"))


def test_a_model_is_not_told_what_a_user_may_do_about_a_timeout():
    said = told(Verdict("timeout", "the time was over. Raise kernelLsp.seconds or use smaller example inputs."))
    assert "the time was over." in said and "seconds" not in said


@pytest.mark.parametrize(
    ("flops", "bound"), [(1_000, "the 1 MB that have to be read"), (10**12, "set by its 1e+03 GFLOP")]
)
def test_a_slow_one_is_told_times_and_the_bound(flops, bound):
    shape = ShapeMeasurement(SPECIMEN.inputs, Timing(20, 19, 21, 50), Timing(9, 8, 10, 50), Timing(12.5, 12, 13, 50))
    shape.bytes, shape.flops, shape.roofline, shape.roofline_share = 10**6, flops, 5.0, 0.4
    device = Device("H100", "cuda", copy_bandwidth=3e12, matmul_rate=4e14)
    said = told(Verdict("ok", launches=3), Measurement([shape], device))
    for part in ("12.5 µs", "eager 20.0 µs", "torch.compile 9.0 µs", "2.5 times above", bound, "launches 3 kernels"):
        assert part in said


def test_one_that_was_not_timed_says_so():
    assert "was not measured (no CUDA GPU here)" in told(Verdict("ok"), Measurement(missing="no CUDA GPU here"))


def test_its_length_is_bounded():
    said = told(Verdict("crashed", "x" * 10_000, 1, [Check("c", False, "y" * 10_000)] * 100), source="z" * 10_000)
    assert said.endswith("class ModelNew.")


@pytest.mark.parametrize(("precision", "wish"), [("tf32", "rounded to TF32"), ("half", "rounded to float16")])
def test_a_lower_precision_is_asked_for(precision, wish):
    subject = Subject(MODULE, "m", "Words")
    [strict], [lower] = prompt.chat(subject), prompt.chat(subject, precision=precision)
    assert "do not lower the precision" in strict["content"] and wish not in strict["content"]
    assert "do not lower the precision" not in lower["content"] and wish in lower["content"]
    assert "{precision}" not in strict["content"] + lower["content"]
    asked = prompt.completion(MODULE, None, precision=precision)
    (said,) = [line for line in asked.splitlines() if wish in line]
    assert said.startswith("# ") and "precision" not in prompt.completion(MODULE, None)
