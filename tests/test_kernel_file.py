"""The kernel file: what goes in comes out, and nothing of a user's is ever lost."""

import itertools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel_lsp import class_schema, errors, kernel_file, kernel_names, schema
from kernel_lsp.code_hash import code_hash

BODY = '"""Doc."""\n\nX = 1\n'
SOURCE = "norm.py::RMSNorm"

scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=4),
    max_leaves=12,
)
bodies = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@settings(max_examples=150, deadline=None)
@example({"a long key": [], "k" * 130: []}, "")
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), values, max_size=5), bodies)
def test_what_is_assembled_is_parsed_again(header, body):
    parsed = kernel_file.parse(kernel_file.assemble(header, body))
    assert parsed.body == body
    assert {key: value for key, value in parsed.header.items() if key not in ("body", "code")} == {
        key: value for key, value in header.items() if key not in ("body", "code")
    }
    assert not parsed.edited


@settings(max_examples=50, deadline=None)
@given(bodies, bodies)
def test_an_edit_of_the_body_shows_and_line_ends_do_not(body, other):
    text = kernel_file.assemble({"source": SOURCE}, body)
    assert not kernel_file.parse(text.replace("\n", "\r\n")).edited
    changed = kernel_file.assemble({"source": SOURCE}, body).removesuffix(body) + other
    same = other == body or code_hash(body) == code_hash(other) != ""
    assert kernel_file.parse(changed).edited == (not same)


WRITTEN = '''"""Double as one kernel.

    y = 2 x
"""

import torch
from a import A  # the class

import b


def double(x, other=None):
    """Twice.

    It returns a new tensor.
    """
    return torch.add(x, x), {"a": 1}  # both
'''


@pytest.mark.parametrize(
    ("changed", "edited"),
    [
        (
            WRITTEN.replace("return torch.add(x, x), {", "return (\n        torch.add(x, x),\n        {").replace(
                "1}", "1},\n    )"
            ),
            False,
        ),
        (WRITTEN.replace("    ", "  ").replace('"a"', "'a'"), False),
        (WRITTEN.replace("import b\n", "").replace("import torch\n", "import b\nimport torch\n\n"), False),
        (WRITTEN.replace("add(x, x)", "add(x, 2)"), True),
        (WRITTEN.replace("# both", "# both of them"), True),
        (WRITTEN.replace("a new tensor", "another tensor"), True),
        (WRITTEN.replace("import b\n", "import c\n"), True),
        (WRITTEN.replace("return", "return ("), True),
    ],
    ids=[
        "line length",
        "indent and quotes",
        "imports sorted",
        "code",
        "comment",
        "docstring",
        "import",
        "syntax error",
    ],
)
def test_a_file_that_was_formatted_is_not_edited(changed, edited):
    text = kernel_file.assemble({"source": SOURCE}, WRITTEN)
    assert changed != WRITTEN
    assert kernel_file.parse(text.removesuffix(WRITTEN) + changed).edited is edited


def test_the_long_header_of_earlier_versions_is_read():
    verdict = schema.Verdict("ok", mode="interpreter", checks=[schema.Check("shapes", True, "3 shapes")], error=1e-7)
    spec = class_schema.TensorSpec("x", [8, 16], "float32", dynamic=["s0", None])
    timing = schema.Timing(10.0, 9.5, 10.5, 50)
    measurement = schema.Measurement([schema.ShapeMeasurement([spec], eager=timing)], schema.Device("H100", "cuda"))
    header = {
        "source": SOURCE,
        "class": "RMSNorm",
        "fingerprint": "sha256:1",
        "verdict": schema.to_json(verdict),
        "measurement": schema.to_json(measurement),
    }
    parsed = kernel_file.parse(kernel_file.assemble(header, BODY))
    assert parsed.claim.verdict == verdict
    assert parsed.claim.measurement.shapes[0].eager == timing
    assert parsed.claim.measurement.shapes[0].kernel is None
    assert (parsed.class_name, parsed.fingerprint, parsed.source) == ("RMSNorm", "sha256:1", SOURCE)


def test_line_numbers_of_body_and_file_differ_by_body_line():
    text = kernel_file.assemble({"source": SOURCE}, BODY)
    parsed = kernel_file.parse(text)
    assert text.split("\n")[parsed.body_line :] == BODY.split("\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "first line"),
        ("import torch\n", "first line"),
        ("# /// kernel-lsp\n# a = 1\n", "not closed"),
        ("# /// kernel-lsp\n# a = 1\nimport torch\n# ///\n", "not closed"),
        ("# /// kernel-lsp\n# a = \n# ///\n", "Invalid value"),
    ],
)
def test_damaged_headers_are_refused_with_the_reason(text, says):
    with pytest.raises(errors.NotAKernelFile, match=says):
        kernel_file.parse(text, "k.py")


@pytest.mark.parametrize(
    ("source", "name", "first", "second", "former"),
    [
        ("rms_norm.py", "RMSNorm", "rms_norm", "rms_norm_rms_norm", "rms_norm"),
        ("blocks.py", "ConvNextBlock", "conv_next_block", "blocks_conv_next_block", "conv_next_block__blocks"),
        ("модель.py", "Модель", "class", "class_54c93c", "модель"),  # ptxas reads ASCII alone
        ("größe.py", "Größe", "grosse", "grosse_grosse", "grösse__d8dc95"),
        ("layers.py", "Conv2d", "conv2d", "layers_conv2d", "conv2d__layers"),
        ("layers.py", "GPT2MLP", "gpt2_mlp", "layers_gpt2_mlp", "gpt2_mlp__layers"),
        ("19_relu.py", "Model", "model", "model_19_relu", "model__19_relu"),
        ("19_ReLU.py", "Model", "model", "model_19_relu", "model__19_relu__dc1de1"),
        ("my-model.py", "Model", "model", "my_model_model", "model__my_model__9aed75"),
        ("with space.py", "Model", "model", "with_space_model", "model__with_space__00093d"),
        ("b.py", "Outer.Inner", "outer_inner", "b_outer_inner", "outer_inner__b__8cd897"),
        ("rms_norm.py", "RmsNorm", "rms_norm", "rms_norm_rms_norm", "rms_norm__704ae9"),
        ("-.py", "_1", "class_1", "class_1_be6a73", "class_1__be6a73"),
    ],
)
def test_names(source, name, first, second, former):
    for folder in (Path("/a"), Path("/moved/elsewhere")):
        names = kernel_names.paths(folder / source, name)
        assert [path.name for path in names[:2]] == [f"{first}_triton.py", f"{second}_triton.py"]
        assert names[-1].name.startswith(second) and {path.parent for path in names} == {folder / "kernels"}
        assert kernel_names.former_path(folder / source, name).name == f"{former}_triton.py"


def written(source: Path, class_name: str, folder: str = "kernels", root: Path | None = None) -> Path:
    """The kernel file that a generation would write for a class."""
    source.parent.mkdir(parents=True, exist_ok=True)
    source.touch()
    kernel = kernel_file.find_kernel(source, class_name, folder)
    name = kernel_file.source_name(source, class_name, kernel, root)
    kernel_file.write(kernel, kernel_file.assemble({"source": name, "class": class_name}, BODY), name)
    return kernel


def test_the_second_class_of_a_name_has_its_file_in_the_name_of_its_kernel(tmp_path):
    sources = [tmp_path / name for name in ("blocks.py", "layers.py", "Layers.py", "LAYERS.py")]
    kernels = [written(source, "ConvNextBlock") for source in sources]
    assert [kernel.name for kernel in kernels[:2]] == ["conv_next_block_triton.py", "layers_conv_next_block_triton.py"]
    assert all(kernel.name.startswith("layers_conv_next_block_") for kernel in kernels[2:])
    assert len({kernel.name.casefold() for kernel in kernels}) == 4
    # Whatever is there now, each keeps its own; a name that is free again goes to a class that has none.
    assert [kernel_file.find_kernel(source, "ConvNextBlock") for source in sources] == kernels
    kernels[0].unlink()
    assert [kernel_file.find_kernel(source, "ConvNextBlock") for source in sources] == kernels
    assert kernel_file.find_kernel(tmp_path / "other.py", "ConvNextBlock") == kernels[0]


def test_250_files_with_the_same_class_get_250_kernel_files(tmp_path):
    sources = [tmp_path / f"{i}_{word}.py" for i in range(125) for word in ("ReLU", "relu")]
    kernels = [written(source, "Model") for source in sources]
    assert len({kernel.name.casefold() for kernel in kernels}) == 250
    assert [kernel_file.find_kernel(source, "Model") for source in sources] == kernels
    assert {kernel.name for kernel in kernels[:3]} >= {"model_triton.py", "model_0_relu_triton.py"}


@pytest.mark.parametrize("folder", ["../kernels", "{tmp_path}/all"])
def test_sources_of_several_folders_that_share_one_for_their_kernels(tmp_path, folder):
    folder = folder.format(tmp_path=tmp_path)
    sources = [tmp_path / "bench" / level / "19_relu.py" for level in ("level1", "level2", "level3")]
    classes = [(source, name) for source in sources for name in ("Model", "Other")]
    kernels = [written(*one, folder, tmp_path) for one in classes]
    assert len(set(kernels)) == 6 and len({kernel.parent for kernel in kernels}) == 1
    assert [kernel_file.find_kernel(*one, folder) for one in classes] == kernels
    # One that was moved is not taken for another folder's.
    os.rename(tmp_path / "bench" / "level1", tmp_path / "bench" / "level0")
    assert [kernel_file.find_kernel(*one, folder) for one in classes[2:]] == kernels[2:]


# No surrogates: a name that is not UTF-8 is refused before a kernel is written (jobs/paths.py).
letters = st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
stems = st.text(st.sampled_from("aAbBß_-. 1éé模ﬁ") | letters, min_size=1, max_size=12)
class_names = st.text(st.sampled_from("aABrRsSmMnN_.1"), max_size=12).filter(
    lambda name: all(part.isidentifier() for part in name.split("."))
)


@settings(max_examples=150, deadline=None)
@example([("a", "BC"), ("x", "A_BC"), ("y", "A_BC"), ("x", "BC")])
@example([("::", "A"), ("0", "B")])
@given(st.lists(st.tuples(stems, class_names), min_size=2, max_size=5, unique=True))
def test_different_classes_have_different_kernel_files_that_an_import_can_name(classes):
    with tempfile.TemporaryDirectory() as folder:
        sources = [(Path(folder, f"{stem}.py"), name) for stem, name in classes]
        try:
            kernels = [written(*one) for one in sources]
        except OSError:  # no file of that name can be
            return
        assert len({kernel.name.casefold() for kernel in kernels}) == len(kernels)
        assert [kernel_file.find_kernel(*one) for one in sources] == kernels
    for kernel in kernels:
        assert kernel.stem.isidentifier() and kernel.stem.isascii() and len(os.fsencode(kernel.name)) < 230


@pytest.mark.parametrize("at", ["former_path", "paths"])
def test_a_kernel_file_under_an_earlier_name_is_still_the_classes(tmp_path, at):
    """``layers.py::RMSNorm`` had ``rms_norm__layers_triton.py``, and at first ``rms_norm_triton.py``, as it has again."""
    source, other = tmp_path / "layers.py", tmp_path / "other.py"
    for path in (source, other):
        path.write_text("")
    found = getattr(kernel_names, at)(source, "RMSNorm")
    earlier = found if at == "former_path" else found[0]
    kernel_file.write(earlier, text_for(source="layers.py::RMSNorm"), "layers.py::RMSNorm")
    assert written(source, "RMSNorm") == kernel_file.find_kernel(source, "RMSNorm") == earlier
    assert os.listdir(earlier.parent) == [earlier.name]  # it is replaced, and there is no second one
    assert kernel_file.find_kernel(other, "RMSNorm") != earlier
    assert kernel_file.find_kernel(source, "RmsNorm") != earlier
    earlier.unlink()
    assert kernel_file.find_kernel(source, "RMSNorm").name == "rms_norm_triton.py"


def test_a_kernel_file_keeps_the_name_that_cut_its_class_in_other_words(tmp_path):
    source = tmp_path / "blocks.py"
    source.write_text("")
    earlier = tmp_path / "kernels" / "conv_ne_xt_block_triton.py"
    kernel_file.write(earlier, text_for(source="blocks.py::ConvNeXtBlock"), "blocks.py::ConvNeXtBlock")
    assert written(source, "ConvNeXtBlock") == kernel_file.find_kernel(source, "ConvNeXtBlock") == earlier
    assert kernel_file.find_kernel(source, "ConvNextBlock").name == "conv_next_block_triton.py"
    earlier.unlink()
    assert written(source, "ConvNeXtBlock").name == "conv_next_block_triton.py"


def test_a_file_of_the_users_keeps_its_name_and_the_kernel_gets_its_next(tmp_path):
    source = tmp_path / "layers.py"
    names = kernel_names.paths(source, "RMSNorm")
    names[0].parent.mkdir()
    for mine, name in itertools.pairwise(names):
        mine.write_text("# mine\n")
        assert written(source, "RMSNorm") == kernel_file.find_kernel(source, "RMSNorm") == name
        name.unlink()
    names[-1].write_text("# mine\n")
    with pytest.raises(errors.KernelFileNotOurs, match="was not written by kernel-lsp"):
        written(source, "RMSNorm")
    assert {name.read_text() for name in names} == {"# mine\n"}


def test_a_folder_that_was_moved_or_copied_keeps_its_kernels(tmp_path):
    (tmp_path / "models").mkdir()
    kernels = [written(tmp_path / "models" / name, "Block", root=tmp_path) for name in ("a.py", "b.py")]
    assert kernel_file.read(kernels[0]).source == "models/a.py::Block"
    shutil.copytree(tmp_path / "models", tmp_path / "copy")
    os.rename(tmp_path / "models", tmp_path / "moved")
    for folder in ("moved", "copy"):
        sources = [tmp_path / folder / name for name in ("a.py", "b.py")]
        found = [kernel_file.find_kernel(source, "Block") for source in sources]
        assert found == [tmp_path / folder / "kernels" / kernel.name for kernel in kernels]
        assert kernel_file.find_kernel(tmp_path / folder / "c.py", "Block").name == "c_block_triton.py"
    # Also while the original is still there, or is there again.
    os.rename(tmp_path / "moved", tmp_path / "models")
    for source, kernel in zip(sources, found, strict=True):
        assert source.parent.name == "copy" and kernel_file.find_kernel(source, "Block") == kernel
    assert [kernel_file.find_kernel(tmp_path / "models" / name, "Block") for name in ("a.py", "b.py")] == kernels


def text_for(body: str = BODY, source: str = SOURCE) -> str:
    return kernel_file.assemble({"source": source, "class": source.partition("::")[2]}, body)


@pytest.fixture
def kernel(tmp_path):
    return tmp_path / "kernels" / "rms_norm_triton.py"


def test_writes_and_replaces_its_own(kernel):
    kernel_file.write(kernel, text_for(), SOURCE)
    kernel_file.write(kernel, text_for("Y = 2\n"), SOURCE)
    assert kernel_file.read(kernel).body == "Y = 2\n"
    assert os.listdir(kernel.parent) == [kernel.name]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(kernel.stat().st_mode) == 0o666 & ~umask


def test_a_link_stays_a_link(kernel, tmp_path):
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text(text_for())
    kernel.parent.mkdir()
    kernel.symlink_to(elsewhere)
    kernel_file.write(kernel, text_for("Y = 2\n"), SOURCE)
    assert kernel.is_symlink()
    assert kernel_file.read(elsewhere).body == "Y = 2\n"


@pytest.mark.parametrize(
    ("existing", "kind"),
    [
        (text_for() + "# mine\n", errors.KernelFileEdited),
        ("print('mine')\n", errors.KernelFileNotOurs),
        ("", errors.KernelFileNotOurs),
        (text_for(source="other.py::RMSNorm"), errors.KernelFileNotOurs),
    ],
)
def test_what_is_the_users_is_left_alone_unless_told_otherwise(kernel, existing, kind):
    kernel.parent.mkdir()
    kernel.write_text(existing)
    with pytest.raises(kind):
        kernel_file.write(kernel, text_for("Y = 2\n"), SOURCE)
    assert kernel.read_text() == existing
    kernel_file.write(kernel, text_for("Y = 2\n"), SOURCE, overwrite=True)
    assert kernel_file.read(kernel).body == "Y = 2\n"


def test_the_same_source_named_from_two_folders_is_the_same():
    assert kernel_file.source_name(Path("/p/m/n.py"), "A", Path("/p/m/kernels/a.py"), Path("/p")) == "m/n.py::A"
    assert kernel_file.source_name(Path("/p/m/n.py"), "A", Path("/p/m/kernels/a.py"), None) == "n.py::A"
    assert kernel_file.source_name(Path("/p/m/n.py"), "A", Path("/k/a.py"), Path("/p")) == "../p/m/n.py::A"


@pytest.mark.parametrize("root", [None, "."])
def test_the_source_is_found_from_the_kernel_file(tmp_path, root):
    source = tmp_path / "model" / "norm.py"
    source.parent.mkdir()
    source.touch()
    for folder in ("kernels", "../elsewhere"):
        kernel = kernel_file.find_kernel(source, "RMSNorm", folder)
        name = kernel_file.source_name(source, "RMSNorm", kernel, tmp_path if root else None)
        kernel_file.write(kernel, text_for(source=name), name)
        assert os.path.samefile(kernel_file.find_source(kernel, kernel_file.read(kernel)), source)
    source.unlink()
    with pytest.raises(errors.SourceMissing):
        kernel_file.find_source(kernel, kernel_file.read(kernel))


# A disk that is full and a folder that is read-only. Root writes to read-only folders, so the writing is done by a child
# that is not root, or meets the limit; either way the real system calls fail.

WRITE = """
import os, resource, signal, sys
from pathlib import Path
from kernel_lsp import errors, kernel_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
if sys.argv[3] == "nobody" and os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
kernel = Path(sys.argv[1])
try:
    kernel_file.write(kernel, kernel_file.assemble({"source": "norm.py::RMSNorm"}, "Y = 2\\n" * 20_000), "norm.py::RMSNorm")
except errors.FileNotWritten as error:
    print(error)
"""


def write_in_child(kernel: Path, limit: int = 0, user: str = "same") -> str:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(kernel), str(limit), user],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stdout


def test_a_write_cut_short_leaves_the_old_file_and_no_rest(kernel):
    kernel_file.write(kernel, text_for(), SOURCE)
    said = write_in_child(kernel, limit=4096)
    assert "File too large" in said
    assert "kernelLsp.kernelFolder" in said
    assert kernel.read_text() == text_for()
    assert os.listdir(kernel.parent) == [kernel.name]


def test_a_full_disk_leaves_the_old_file_and_no_rest(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False).returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        kernel = disk / "kernels" / "rms_norm_triton.py"
        kernel_file.write(kernel, text_for(), SOURCE)
        with pytest.raises(errors.FileNotWritten, match="No space left"):
            kernel_file.write(kernel, text_for("Y = 2\n" * 40_000), SOURCE)
        assert kernel.read_text() == text_for()
        assert os.listdir(kernel.parent) == [kernel.name]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_folder_is_said_to_be_one():
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path, into which only its owner may look
        os.chmod(folder, 0o755)
        kernel = Path(folder) / "kernels" / "rms_norm_triton.py"
        kernel_file.write(kernel, text_for(), SOURCE)
        kernel.parent.chmod(0o555)
        try:
            said = write_in_child(kernel, user="nobody")
        finally:
            kernel.parent.chmod(0o755)
        assert "Permission denied" in said
        assert kernel.read_text() == text_for()
