"""A candidate reads what it needs and writes in its own folder; nothing of the user's is changed or read."""

from __future__ import annotations

import os
from pathlib import Path

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
        about += tuple(os.listxattr(path)) if is_file else ()
        found[path.relative_to(folder)] = (*about, path.read_bytes() if is_file else b"")
    return {path: about for path, about in found.items() if "__pycache__" not in path.parts}


def attacked(victim, names, **how):
    """(verdict, names of the attacks that changed something) after they have been tried, each on a file of its own."""
    if not victim.warm:  # a worker makes its folders when it begins, and torch one of its own
        victim.attack("pass")
        victim.warm = True
    targets = {}
    for number, name in enumerate(names):
        place, _, rest = WRITES[name][1].partition("/")
        top = victim.scratch if place == "scratch" else victim.home
        targets[name] = top / f"attack-{number}" / rest
        targets[name].parent.mkdir(parents=True, exist_ok=True)
        targets[name].write_text("what the user wrote")
        targets[name].chmod(0o644)
    before = {name: state(_top(target)) for name, target in targets.items()}
    around = _around(victim)
    codes = {name: f"target = targets[{name!r}]\n{WRITES[name][0]}" for name in names}
    verdict, told = victim.attacks(codes, targets={n: str(target) for n, target in targets.items()}, **how)
    assert all(told.values()), told
    assert _around(victim) == around
    return verdict, {name for name, target in targets.items() if state(_top(target)) != before[name]}


def _top(target):
    """The folder of one attack."""
    return next(folder for folder in target.parents if folder.name.startswith("attack-"))


def _around(victim):
    """The rest of the user's files: not the request's own folder, which comes and goes, nor what the test wrote."""
    found = {**state(victim.home), **{Path("scratch") / p: s for p, s in state(victim.scratch).items()}}
    own = ("kernel-lsp-", "attack-")
    return {p: s for p, s in found.items() if p.name != "victim.py" and not any(n.startswith(own) for n in p.parts)}


def test_nothing_of_the_users_is_changed(victim):
    verdict, changed = attacked(victim, WRITES)
    assert changed == set()
    assert verdict["status"] == "ok", verdict["reason"]


def test_without_the_layers_it_is(bare):
    """All but what root's powers take, which are a layer of their own: so the attacks are real."""
    _, changed = attacked(bare, WRITES)
    assert changed == set(WRITES) - {"another owner"}


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


def secrets_in(victim):
    """(the verdict, name → which secrets were found by that way)."""
    tell = "tell('found', [w for w in ('secret', 'token') if f'the {w} of this test' in found])"
    codes = {name: STACK + f"\nfound = {code}\n{tell}" for name, code in READS.items()}
    verdict, told = victim.attacks(codes, home=str(victim.home))
    assert all(told.values()), told
    return verdict, {name: any("['" in line for line in lines) for name, lines in told.items()}


def test_nothing_secret_is_read(victim):
    verdict, found = secrets_in(victim)
    assert not any(found.values()), found
    assert verdict["status"] == "ok", verdict["reason"]


def test_without_the_layers_secrets_are_open(bare):
    _, found = secrets_in(bare)
    assert found["a key in the home folder"] and found["a link in its own folder"], found


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
