"""The data on the wire about a class: its tensors, what the worker or a language model is told of it, what a kernel would gain.

As ``schema.py``, which has what becomes of its kernels and the conversions to JSON and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class TensorSpec:
    """One tensor argument, parameter or result: ``dynamic[i]`` names the symbol of dimension i, or is None.

    ``narrowed``: the dimensions without a symbol of which forward was seen to take another size.
    """

    name: str
    shape: list[int]
    dtype: str  # without the "torch." prefix
    stride: list[int] = field(default_factory=list)
    device: str = "cpu"
    dynamic: list[str | None] = field(default_factory=list)
    narrowed: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """``float32[8, 1024, 4096]``: dtype and sizes."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def symbolic_text(self) -> str:
        """``float32[x_0, 4096]``: a dimension that may vary is shown by its symbol."""
        symbols = [*self.dynamic, *[None] * len(self.shape)]
        sizes = [symbol or str(size) for size, symbol in zip(self.shape, symbols, strict=False)]
        return f"{self.dtype}[{', '.join(sizes)}]"


@dataclass
class Independent:
    """A dimension along which the module's results do not depend on one another, as the exported graph shows.

    Slicing every tensor input i along ``inputs[i]`` (None: the input is used whole) to [a:b] gives the outputs
    sliced along ``outputs[j]`` to [a:b]. ``size``: its length in the example.
    """

    size: int
    inputs: list[int | None]  # one entry per tensor input, in the order of Specimen.inputs
    outputs: list[int]  # one entry per tensor output


@dataclass
class Specimen:
    """What the worker learned by importing the module and exporting its graph."""

    class_name: str
    module: str  # dotted name under which a kernel file imports the class
    init_args: str  # source text of the constructor's arguments, for display
    inputs_from: str  # where the example inputs came from: "get_inputs_RMSNorm()", "pyproject.toml", …
    inputs: list[TensorSpec] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)  # what forward gets beside tensors: "causal=True"
    outputs: list[TensorSpec] = field(default_factory=list)
    parameters: list[TensorSpec] = field(default_factory=list)  # parameters and buffers
    ops: dict[str, int] = field(default_factory=dict)  # ATen operator → how often
    graph: str = ""  # "sha256:…", equal for modules that compute the same under other names; "" without a graph
    state: list[str] = field(default_factory=list)  # parameters, buffers, constants as the graph meets them
    forward: list[str] = field(default_factory=list)  # the names of forward's parameters, without self
    flops: int | None = None
    bytes: int | None = None  # least traffic: every input read once, every output written once
    dynamic: dict[str, list[int]] = field(default_factory=dict)  # symbol → [least, greatest] size
    training: bool = False
    independent: list[Independent] = field(default_factory=list)  # dimensions that may be computed slice by slice
    fake: bool = False  # learned without tensors in memory
    file: str = ""  # where no import statement can name the module: its path from the kernel's folder
    examples: int = 1  # how many there are; this is what was learned with one of them
    computes_indices: bool = False  # it reads at indices that it computes from floats, and that nothing bounds
    converted: str = ""  # the dtype that the module was converted to for this example; "" where it was not


@dataclass
class Subject:
    """A class as a language model gets it, and what a kernel file around the model's answer needs to know of it."""

    source: str  # self-contained module for the prompt: imports, what the class uses, ``class Model``, example inputs
    import_from: str  # dotted module a kernel file imports the class from
    base: str  # dotted class name there: "RMSNorm", "Outer.Inner"
    parameters: list[str] = field(default_factory=list)  # forward's as declared, without self: ["x", "mask=None"]
    names: list[str] = field(default_factory=list)  # as passed on: ["x", "mask"]
    tensors: list[str] = field(default_factory=list)  # Python for each tensor argument: ["x", "pair[0]"]
    attributes: list[str] = field(default_factory=list)  # every name readable as self.<name> once constructed
    state: list[str] = field(default_factory=list)  # state_dict keys
    conditions: list[str] = field(default_factory=list)  # the envelope, dynamic dimensions free
    exact: list[str] = field(default_factory=list)  # further conditions that pin them to the example's sizes
    import_file: str = ""  # where no import statement can name import_from: its path from the kernel's folder


@dataclass
class Interface:
    """What a kernel that was written for another class has to know of this one to stand in for it."""

    parameters: list[str] = field(default_factory=list)  # forward's as declared, without self: ["x", "mask=None"]
    names: list[str] = field(default_factory=list)  # as passed on: ["x", "mask"]
    arguments: list[str] = field(default_factory=list)  # conditions for what forward is given besides tensors
    settings: list[str] = field(default_factory=list)  # conditions for what the module holds besides tensors
    attributes: list[str] = field(default_factory=list)  # every name readable as self.<name> once constructed


@dataclass
class TorchHint:
    """What torch does slowly in a class, whether it gets a kernel or not. ``kind``: a word for it; ``source``: where that is known from."""

    kind: str
    message: str
    source: str


@dataclass
class Estimate:
    """What a kernel is estimated to gain over eager before one is written, by the data sheet of ``target``.

    ``launches`` and ``bytes``: what eager launches and moves in one call; ``least_bytes``: its inputs, parameters and results.
    Microseconds: ``eager`` and ``kernel``. ``speedup`` is None where no kernel can be written; ``missing`` says why.
    """

    target: str
    launches: int = 0
    bytes: int = 0
    least_bytes: int = 0
    eager: float = 0.0
    kernel: float | None = None
    kernel_launches: int = 0
    kernel_bytes: int = 0
    speedup: float | None = None
    missing: str = ""
    hints: list[TorchHint] = field(default_factory=list)
