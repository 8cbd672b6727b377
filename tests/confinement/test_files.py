"""A candidate reads what it needs and writes in its own folder; nothing of the user's is changed or read."""

from __future__ import annotations

import pytest

# name → what the candidate does with ``target``, a file or a name beside it
WRITES = {
    "a new file in the home folder": ("open(target + '.new', 'w').write('harm')", "home/notes"),
    "a file of the user is overwritten": ("open(target, 'w').write('harm')", "home/notes"),
    "a file of the user is truncated": ("os.truncate(target, 0)", "home/notes"),
    "a file of the user is removed": ("os.remove(target)", "home/notes"),
    "a file of the user is moved": ("os.rename(target, target + '.new')", "home/notes"),
    "a link beside it": ("os.link(target, target + '.new')", "home/notes"),
    "a folder is removed": ("shutil.rmtree(os.path.dirname(target))", "home/folder/inside"),
    "the source is rewritten": ("open(target, 'a').write('harm')", "home/work/project/other.py"),
    "a module where the user's Python would import it": (
        "open(os.path.join(os.path.dirname(target), 'torch.py'), 'w').write('harm')",
        "home/work/project/other.py",
    ),
    "a start-up file of Python": (
        "d = os.path.join(os.path.dirname(target), '.local/lib/python3.11/site-packages'); os.makedirs(d);"
        "open(os.path.join(d, 'sitecustomize.py'), 'w').write('harm')",
        "home/notes",
    ),
    "the folder for temporary files": ("open(os.path.join(os.path.dirname(target), 'planted'), 'w')", "scratch/notes"),
    "another owner": ("os.chown(target, 12345, 12345)", "home/notes"),
    "other permissions": ("os.chmod(target, 0o777)", "home/notes"),
    "another time": ("os.utime(target, (1, 1))", "home/notes"),
    "an attribute": ("os.setxattr(target, 'user.harm', b'1')", "home/notes"),
}


def state(folder):
    """Everything in a folder, with what one may change about it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        is_file = path.is_file()
        about = (status.st_mode, status.st_uid, status.st_nlink if is_file else 0, status.st_mtime if is_file else 0)
        found[path.relative_to(folder)] = (*about, path.read_bytes() if is_file else b"")
    return {path: about for path, about in found.items() if "__pycache__" not in path.parts}


def prepare(victim, name):
    code, where = WRITES[name]
    target = victim.folder / where
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("what the user wrote")
    target.chmod(0o644)
    return code, target


def watched(victim, name, target):
    folder = victim.scratch if where_scratch(name) else victim.home
    found = state(folder)
    # The request's own folder in the scratch folder comes and goes; the attacked file was written by the test itself.
    return {p: s for p, s in found.items() if not p.parts[0].startswith("kernel-lsp-") and p.name != "victim.py"}


def where_scratch(name):
    return WRITES[name][1].startswith("scratch")


@pytest.mark.parametrize("name", WRITES)
def test_nothing_of_the_users_is_changed(victim, name):
    code, target = prepare(victim, name)
    before, said = watched(victim, name, target), len(victim.said())
    verdict = victim.attack(code, target=str(target))
    assert victim.said()[said:], "the attack has run"
    assert watched(victim, name, target) == before
    assert verdict["status"] == "ok", verdict["reason"]


@pytest.mark.parametrize("name", ["a file of the user is removed", "a start-up file of Python", "other permissions"])
def test_without_the_layers_it_is(bare, name):
    code, target = prepare(bare, name)
    before = watched(bare, name, target)
    bare.attack(code, target=str(target))
    assert watched(bare, name, target) != before


READS = {
    "a key in the home folder": "open(os.path.join(home, '.ssh', 'id_test')).read()",
    "the environment it was started with": "open('/proc/self/environ').read() + repr(dict(os.environ))",
    "the environment of the process above": "open(f'/proc/{os.getppid()}/environ').read()",
    "its own stack": "(lambda: [open('/proc/self/mem', 'rb', 0), None][1] or _stack())()",
    "a key over an open folder": "open('.ssh/id_test', opener=lambda p, f: os.open(p, f, dir_fd=os.open(home, os.O_PATH))).read()",
    "a link in its own folder": "(os.symlink(home, 'link'), open('link/.ssh/id_test').read())[1]",
}
STACK = """
def _stack():
    begin, end = next(
        [int(n, 16) for n in line.split()[0].split("-")] for line in open("/proc/self/maps") if "[stack]" in line
    )
    return ctypes.string_at(begin + (end - begin) // 2, (end - begin) // 2).decode("latin-1")
"""


def secrets_in(victim, name):
    said = len(victim.said())
    code = (STACK if "_stack" in READS[name] else "") + f"\nfound = {READS[name]}\n"
    code += "tell('found', [w for w in ('secret', 'token') if f'the {w} of this test' in found])"
    verdict = victim.attack(code, home=str(victim.home))
    return verdict, victim.said()[said:]


@pytest.mark.parametrize("name", READS)
def test_nothing_secret_is_read(victim, name):
    verdict, said = secrets_in(victim, name)
    assert said, "the attack has run"
    assert not any("['" in line for line in said), said
    assert verdict["status"] == "ok", verdict["reason"]


@pytest.mark.parametrize("name", ["a key in the home folder", "a link in its own folder"])
def test_without_the_layers_secrets_are_open(bare, name):
    _, said = secrets_in(bare, name)
    assert any("['" in line for line in said), said


def test_the_users_project_can_be_read_and_the_own_folder_written(victim):
    (victim.project / "table.txt").write_text("numbers")
    said = len(victim.said())
    code = (
        "open('mine', 'w').write(open(os.path.join(project, 'table.txt')).read()); tell('wrote', open('mine').read())"
    )
    code += "; tell('temporary', bool(tempfile.NamedTemporaryFile().write(b'x')))"
    assert victim.attack(code, project=str(victim.project))["status"] == "ok"
    assert {"attack: wrote numbers", "attack: temporary True", "attack: done"} <= set(victim.said()[said:])


def test_a_candidate_cannot_rewrite_its_own_text(victim):
    said = len(victim.said())
    code = "import glob; files = glob.glob('../sources/**/*.py', recursive=True); tell(len(files)); open(files[0], 'a')"
    victim.attack(code)
    assert any("PermissionError" in line for line in victim.said()[said:]), victim.said()[said:]
