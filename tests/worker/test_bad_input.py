"""Every kind of bad input gives its own error, at the right line, naming the fix, without a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.worker_client import WorkerError

HEAD = "import torch\nfrom torch import nn\n"
GOOD = "class Good(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
INPUTS = "def get_inputs():\n    return [torch.randn(4, 8)]\n"

CASES = {
    "syntax error": ("class Good(nn.Module)\n    pass\n", "SyntaxInvalid", 3, "expected ':'"),
    "no such class": ("x = 1\n", "ClassNotFound", None, "No class Good"),
    "not a module": ("class Good:\n    pass\n", "NotAModule", None, "not a class derived from torch.nn.Module"),
    "a function": ("def Good(x):\n    return x\n", "NotAModule", None, "not a class derived from torch.nn.Module"),
    "twice": (GOOD + GOOD + INPUTS, "ClassDefinedTwice", 6, "more than once"),
    "no inputs": (GOOD, "NoExampleInputs", None, "get_inputs_Good()"),
    "inputs of another class": (
        GOOD + "def get_inputs():\n    return [torch.randn(2), torch.randn(2)]\n",
        "NoExampleInputs",
        None,
        "No example inputs",
    ),
    "inputs that raise": (
        GOOD + "def get_inputs():\n    return [torch.randn(4) @ torch.randn(5)]\n",
        "ExampleInputsFailed",
        7,
        "get_inputs() failed at line 7",
    ),
    "import that fails": (
        "import a_package_that_is_not_there\n" + GOOD,
        "ImportFailed",
        3,
        "a_package_that_is_not_there",
    ),
    "import that exits": ("raise SystemExit(2)\n" + GOOD, "ImportFailed", 3, "SystemExit"),
    "init that raises": (
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.x = 1 / 0\n"
        "    def forward(self, x):\n        return x\n" + INPUTS,
        "InitFailed",
        6,
        "ZeroDivisionError",
    ),
    "init without its arguments": (
        "class Good(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
        "    def forward(self, x):\n        return x\n" + INPUTS,
        "InitFailed",
        None,
        "get_init_inputs_Good()",
    ),
    "forward that raises": (
        "class Good(nn.Module):\n    def forward(self, x):\n        return x @ torch.randn(3, 3)\n" + INPUTS,
        "ForwardFailed",
        5,
        "example inputs fit the module",
    ),
    "inputs of another dtype than the module's": (
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.ones(8, 8))\n"
        "    def forward(self, x):\n        return torch.addmv(x.sum(1), x, self.w[0])\n"
        "def get_inputs():\n    return [torch.randn(4, 8).half()]\n",
        "ForwardFailed",
        8,
        "inputs are float16, the module's tensors float32: make both of one dtype, or yield an example in float32 first",
    ),
    "a lazy layer": (
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.LazyLinear(3)\n"
        "    def forward(self, x):\n        return self.net(x)\n" + INPUTS,
        "NotWritable",
        None,
        "net.weight of a LazyLinear has no shape before the first call; construct it with its sizes",
    ),
    "an output that is no tensor": (
        "class Good(nn.Module):\n    def forward(self, x):\n        return 'done'\n" + INPUTS,
        "OutputsNotTensors",
        None,
        "returned str",
    ),
    "an output of texts and numbers": (
        "class Good(nn.Module):\n    def forward(self, x):\n        return ['done', 1]\n" + INPUTS,
        "OutputsNotTensors",
        None,
        "returned list without a tensor in it;",
    ),
    "None": (
        "class Good(nn.Module):\n    def forward(self, x):\n        x + 1\n" + INPUTS,
        "OutputsNotTensors",
        None,
        "returned None",
    ),
    "a device that is not there": (
        GOOD + "def get_inputs():\n    return [torch.randn(4, device='cuda:77')]\n",
        "DeviceMissing",
        7,
        "kernelLsp.workerPrefix",
    ),
    "a module on a device that is not there": (
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(3, device='cuda:77'))\n"
        "    def forward(self, x):\n        return x\n" + INPUTS,
        "DeviceMissing",
        6,
        "which is not here",
    ),
    "a module whose arguments are on a device that is not there": (
        "class Good(nn.Module):\n    def __init__(self, w):\n        super().__init__()\n"
        "    def forward(self, x):\n        return x\n" + INPUTS + "def get_init_inputs():\n"
        "    return [torch.ones(3, device='cuda:77')]\n",
        "DeviceMissing",
        11,
        "which is not here",
    ),
    "a device that is not there, after a look for one": (
        "HERE = torch.cuda.is_available()\n" + GOOD + "def get_inputs():\n    return [torch.randn(4).to('cuda:77')]\n",
        "DeviceMissing",
        8,
        "which is not here",
    ),
    "a forward that moves its input to a device that is not there": (
        "class Good(nn.Module):\n    def forward(self, x):\n        return (x.to('cuda:77') + 1).to(x.device)\n"
        + INPUTS,
        "DeviceMissing",
        5,
        "which is not here",
    ),
    "a forward that makes a tensor on a device that is not there": (
        "class Good(nn.Module):\n    def forward(self, x):\n"
        "        return x + torch.ones(8, device='cuda:77').to(x.device)\n" + INPUTS,
        "DeviceMissing",
        5,
        "which is not here",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_has_its_own_message(worker, write, case):
    text, code, line, said = CASES[case]
    with pytest.raises(WorkerError) as caught:
        worker.call("introspect", path=write(HEAD + text), class_name="Good")
    error = caught.value
    assert error.code == code, error.message
    assert said in error.message
    assert "Traceback" not in error.message and "\n" not in error.message
    if line:
        assert error.where["line"] == line


@pytest.mark.parametrize("asked", ["interface", "synthesize", "explain"])
def test_a_device_that_is_not_there_is_named_whatever_is_asked(worker, write, asked):
    text = GOOD + "def get_inputs():\n    return [torch.randn(4, device='cuda:77')]\n"
    with pytest.raises(WorkerError, match="which is not here") as caught:
        worker.call(asked, path=write(HEAD + text), class_name="Good", gpu=None, stages=["graph"], leave=[])
    assert caught.value.code == "DeviceMissing"


def test_a_constructor_that_fails_names_what_gave_its_arguments(worker, write):
    text = "class Good(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.w = torch.ones(n)\n"
    text = HEAD + text + "    def forward(self, x):\n        return x + 1\n" + INPUTS

    def message(more="", **asked):
        with pytest.raises(WorkerError) as caught:
            worker.call("introspect", path=write(text + more), class_name="Good", **asked)
        assert caught.value.code == "InitFailed"
        return caught.value.message

    table = "Check init in the table of Good under [tool.kernel-lsp.inputs] in pyproject.toml: its arguments are from there."
    assert message(inputs={"init": ["a"]}).endswith(table)
    own = message("def get_init_inputs_Good():\n    return ['a']\n", inputs={"init": ["a"]})
    assert own.endswith("Check get_init_inputs_Good(): its arguments are from there.")
    assert message().endswith("If it takes arguments, give them by get_init_inputs_Good().")


def test_a_file_that_is_not_on_disk(worker, tmp_path):
    with pytest.raises(WorkerError, match="Save the file first") as caught:
        worker.call("introspect", path=str(tmp_path / "new.py"), class_name="Good")
    assert caught.value.code == "NotSavedYet"


def test_data_dependent_control_flow_is_named_when_a_kernel_is_wanted(worker, write):
    text = "class Good(nn.Module):\n    def forward(self, x):\n        if x.sum() > 0:\n            return x\n        return -x\n"
    path = write(HEAD + text + INPUTS)
    assert worker.call("introspect", path=path, class_name="Good")["ops"] == {}
    with pytest.raises(WorkerError, match=r"torch\.where") as caught:
        worker.call("synthesize", path=path, class_name="Good")
    assert caught.value.code == "NotExportable"
    assert caught.value.where["line"] == 5


def test_no_such_device_to_validate_on(worker, write):
    with pytest.raises(WorkerError, match="cuda:77") as caught:
        worker.call("validate", path=write(HEAD + GOOD + INPUTS), class_name="Good", source="", device="cuda:77")
    assert caught.value.code == "NoSuchDevice"


def test_a_forward_that_assigns_an_attribute(worker, write):
    text = (
        "class Cell(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.state = [torch.zeros(4, 8)]\n"
        "    def forward(self, x):\n        self.state[0] = torch.tanh(self.state[0] + x)\n        return self.state[0] * 2\n"
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.cell = Cell()\n"
        "    def forward(self, x):\n        return self.cell(x)\n"
    )
    path = write(HEAD + text + INPUTS)
    assert worker.call("introspect", path=path, class_name="Good")["outputs"][0]["shape"] == [4, 8]
    with pytest.raises(WorkerError, match=r"changes self\.cell\.state\[0\] .*module's own tensors") as caught:
        worker.call("synthesize", path=path, class_name="Good")
    assert caught.value.code == "AttributeAssigned"
    assert caught.value.where["line"] == 8


def test_a_forward_that_changes_a_list_that_it_is_given(worker, write):
    """The list of the example was changed by the first trace, and the next call found other shapes in it."""
    text = (
        "class Good(nn.Module):\n    def forward(self, x):\n        for i in range(2):\n"
        "            x[i] = torch.cat((x[i], x[i].relu()), 1)\n        return torch.cat(x)\n"
        "def get_inputs():\n    return [[torch.randn(4, 8), torch.randn(5, 8)]]\n"
    )
    path = write(HEAD + text)
    assert worker.call("introspect", path=path, class_name="Good")["outputs"][0]["shape"] == [9, 16]
    with pytest.raises(WorkerError, match=r"changes the list x .*x = list\(x\)") as caught:
        worker.call("synthesize", path=path, class_name="Good")
    assert caught.value.code == "ArgumentChanged"
    assert caught.value.where["line"] == 6


def test_what_only_real_tensors_refuse_has_a_line_and_an_advice(worker, write):
    """Without memory torch takes a product of two dtypes: the call that validation compares with is the first that raises."""
    text = (
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.linear = nn.Linear(8, 8)\n"
        "    def forward(self, x):\n        return self.linear(x)\n"
        "def get_inputs():\n    return [torch.randn(4, 8).half()]\n"
    )
    job = {"path": write(HEAD + text), "class_name": "Good", "device": "interpreter"}
    source = f"from {Path(job['path']).stem} import Good\n\n\nclass GoodTriton(Good):\n    pass\n"
    with pytest.raises(WorkerError, match="float16, the module's tensors float32: make both") as caught:
        worker.call("validate", source=source, measure="none", **job)
    assert (caught.value.code, caught.value.where["line"]) == ("ForwardFailed", 8)


def test_an_argument_that_torch_does_not_take_is_told_in_plain_words(worker, write):
    text = (
        "import enum\nclass Way(enum.Enum):\n    SUM = 1\nclass Good(nn.Module):\n    def forward(self, x, way):\n"
        "        return x.sum(0)\ndef get_inputs():\n    return [torch.randn(4, 8), Way.SUM]\n"
    )
    with pytest.raises(WorkerError, match=r"nor None \(Way\.SUM\)\. Hand it to the constructor") as caught:
        worker.call("synthesize", path=write(HEAD + text), class_name="Good")
    assert caught.value.code == "NotExportable"


def test_gradients_within_forward_are_told_in_plain_words(worker, write):
    text = (
        "class Good(nn.Module):\n    def forward(self, x):\n        energy = lambda row: torch.tanh(row * self.weight).sum()\n"
        "        return torch.func.vmap(torch.func.grad(energy))(x)\n"
        "    def __init__(self):\n        super().__init__()\n        self.weight = nn.Parameter(torch.ones(8))\n"
    )
    with pytest.raises(WorkerError, match=r"gradients of torch\.autograd\.grad and torch\.func\.grad are") as caught:
        worker.call("synthesize", path=write(HEAD + text + INPUTS), class_name="Good")
    assert caught.value.code == "NotExportable"


def test_a_hook_that_replaces_the_arguments_of_forward(worker, write):
    text = (
        "def shifted(module, args):\n    return args[0] + 1\n"
        "class Good(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_forward_pre_hook(shifted)\n    def forward(self, x):\n        return x * 2\n"
    )
    with pytest.raises(WorkerError, match=r"hook of its own \(shifted\) replaces the arguments of forward") as caught:
        worker.call("synthesize", path=write(HEAD + text + INPUTS), class_name="Good")
    assert caught.value.code == "NotWritable"


def test_arguments_of_one_constructor_are_not_for_a_class_that_has_none(worker, write):
    """torch.nn.Module's own takes no arguments, whatever its signature says."""
    text = GOOD + INPUTS + "class Sized(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    path = write(HEAD + text + "    def forward(self, x):\n        return x\ndef get_init_inputs():\n    return [5]\n")
    for name in ("Good", "Sized"):
        assert worker.call("introspect", path=path, class_name=name)


def test_inputs_that_the_other_side_would_not_get_as_they_are(worker, write):
    """A named tuple came as a list there, and the kernel was called crashed."""
    text = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: torch.Tensor\n    b: torch.Tensor\n"
    text += "class Good(nn.Module):\n    def forward(self, p):\n        return p.a + p.b\n"
    path = write(HEAD + text + "def get_inputs():\n    return [Pair(torch.ones(3), torch.ones(3))]\n")
    with pytest.raises(WorkerError) as caught:
        source = f"from {Path(path).stem} import Good\n\n\nclass GoodTriton(Good):\n    pass\n"
        worker.call("validate", path=path, class_name="Good", source=source, device="interpreter", measure="none")
    assert caught.value.code == "InputsNotSupported"
    assert caught.value.message.startswith("The example inputs of Good contain a Pair, which cannot be handed to")
