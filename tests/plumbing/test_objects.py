"""Reading objects, and building and writing new ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gittasks.plumbing import objects
from gittasks.plumbing.errors import GitError, ObjectMissing
from gittasks.plumbing.objects import Commit, Draft, Entry, Object, Reader, Signature
from gittasks.plumbing.repository import Repository
from tests.support.git import git, make_repository

ADA = Signature("Ada", "ada@example.org", 1_700_000_000)
FILES = {"app.txt": "one\n", "lib/a.txt": "a\n", "lib/b.txt": "b\n"}
FORMATS = pytest.mark.parametrize("object_format", ["sha1", "sha256"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "r", files=FILES)


@pytest.fixture
def repo(folder: Path) -> Repository:
    return Repository.open(str(folder))


@pytest.fixture
def reader(repo: Repository) -> Iterator[Reader]:
    with Reader(repo) as reader:
        yield reader


def _root(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD^{tree}")


# ------------------------------------------------------------------------------- reading


def test_an_object_is_read_by_id_and_by_path(folder: Path, reader: Reader) -> None:
    oid = git(folder, "rev-parse", "HEAD:app.txt")
    wanted = Object(oid, "blob", b"one\n")
    assert (reader.get(oid), reader.get("HEAD:app.txt")) == (wanted, wanted)


def test_a_missing_object_is_none(reader: Reader) -> None:
    assert (reader.get("1" * 40), reader.get("HEAD:no such\ttext")) == (None, None)


def test_one_process_serves_every_question(repo: Repository, reader: Reader) -> None:
    before = repo.calls
    reader.get("HEAD")
    reader.many(["HEAD:app.txt", "HEAD:lib"])
    assert repo.calls - before == 1


def test_no_process_is_started_before_it_is_needed(repo: Repository) -> None:
    before = repo.calls
    with Reader(repo) as reader:
        assert reader.many([]) == []
    assert repo.calls == before


def test_many_large_objects_are_read_in_order_without_blocking(
    repo: Repository, reader: Reader
) -> None:
    drafts = [
        objects.draft(repo, "blob", bytes([65 + number % 26]) * 200_000 + b"%d" % number)
        for number in range(60)
    ]
    objects.write(repo, drafts)
    names = [name for one in drafts for name in (one.oid, "0" * 39 + "1")]
    wanted = [found for one in drafts for found in (Object(*one), None)]
    assert reader.many(names) == wanted


def test_an_object_written_after_the_start_is_found(repo: Repository, reader: Reader) -> None:
    new = objects.draft(repo, "blob", b"later\n")
    assert reader.get(new.oid) is None
    objects.write(repo, [new])
    assert reader.blob(new.oid) == b"later\n"


def test_objects_packed_after_the_start_are_found(repo: Repository, reader: Reader) -> None:
    reader.get("HEAD")
    drafts = [objects.draft(repo, "blob", b"%d" % number) for number in range(150)]
    objects.write(repo, drafts)
    assert reader.blob(drafts[-1].oid) == b"149"


@pytest.mark.parametrize("name", ["", "HEAD\nHEAD~1"])
def test_a_name_that_would_be_two_questions_is_refused(reader: Reader, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be asked for"):
        reader.get(name)


def test_an_ambiguous_short_id_is_an_error(folder: Path, repo: Repository, reader: Reader) -> None:
    blobs = [objects.draft(repo, "blob", b"%d" % number) for number in range(2000)]
    seen: dict[str, Draft] = {}
    for one in blobs:
        twin = seen.setdefault(one.oid[:4], one)
        if twin is not one:
            objects.write(repo, [one, twin])
            with pytest.raises(GitError, match="ambiguous"):
                reader.get(one.oid[:4])
            return
    pytest.fail("no two ids begin alike")


def test_the_reader_answers_again_after_an_error(repo: Repository, reader: Reader) -> None:
    with pytest.raises(ObjectMissing, match=r"^the object HEAD is a commit, not a blob\.$"):
        reader.blob("HEAD")
    assert reader.blob("HEAD:app.txt") == b"one\n"


def test_a_missing_blob_is_told(reader: Reader) -> None:
    with pytest.raises(ObjectMissing, match=r"^the object HEAD:none is missing\.$"):
        reader.blob("HEAD:none")


def test_the_rows_of_a_tree_are_told_for_a_tree_and_for_a_commit(
    folder: Path, reader: Reader
) -> None:
    rows = (
        Entry("100644", "app.txt", git(folder, "rev-parse", "HEAD:app.txt")),
        Entry("40000", "lib", git(folder, "rev-parse", "HEAD:lib")),
    )
    assert (reader.tree(_root(folder)), reader.tree("HEAD")) == (rows, rows)


def test_a_commit_is_taken_apart(folder: Path, reader: Reader) -> None:
    parent = git(folder, "rev-parse", "HEAD")
    env = {
        "GIT_AUTHOR_NAME": "Grace Hüpper",
        "GIT_AUTHOR_EMAIL": "g@example.org",
        "GIT_AUTHOR_DATE": "1600000000 -0330",
    }
    command = ("commit-tree", _root(folder), "-p", parent, "-m", "Subject\n\ntext")
    oid = git(folder, *command, env=env)
    assert reader.commit(oid) == Commit(
        oid,
        _root(folder),
        (parent,),
        "Grace Hüpper <g@example.org>",
        1_600_000_000,
        "-0330",
        "Ada <ada@example.org>",
        1_700_000_000,
        "+0000",
        b"Subject\n\ntext\n",
    )


def test_a_signed_merge_is_taken_apart_without_its_signature() -> None:
    data = (
        b"tree " + b"a" * 40 + b"\nparent " + b"b" * 40 + b"\nparent " + b"c" * 40 + b"\n"
        b"author A <a> 1 +0000\ncommitter C <c> 2 +0100\n"
        b"gpgsig -----BEGIN-----\n parent faked\n author X <x> 9 +0000\n \n -----END-----\n"
        b"\nmessage\n\ntree of life\n"
    )
    assert objects.parse_commit("d" * 40, data) == Commit(
        "d" * 40, "a" * 40, ("b" * 40, "c" * 40),
        "A <a>", 1, "+0000", "C <c>", 2, "+0100", b"message\n\ntree of life\n",
    )  # fmt: skip


def test_a_commit_with_a_nonsense_date_is_still_read() -> None:
    data = b"tree " + b"a" * 40 + b"\nauthor A <a> soon\ncommitter C\n\n"
    commit = objects.parse_commit("d" * 40, data)
    assert (commit.author, commit.author_time, commit.committer_time, commit.message) == (
        "A <a>",
        0,
        0,
        b"",
    )


# ------------------------------------------------------------------------------ building


@FORMATS
@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_the_id_of_an_object_is_the_one_git_gives_it(
    tmp_path: Path, object_format: str, kind: str
) -> None:
    folder = make_repository(tmp_path / "r", object_format=object_format)
    repo = Repository.open(str(folder))
    data = {
        "blob": b"text\r\n\0\xff",
        "tree": b"",
        "commit": objects.commit_bytes(_root(folder), (), ADA, ADA, b"m"),
    }[kind]
    told = git(folder, "hash-object", "-t", kind, "--stdin", stdin=data)
    assert objects.object_id(repo, kind, data) == told


@FORMATS
def test_git_reads_back_the_commit_that_was_built_in_memory(
    tmp_path: Path, object_format: str
) -> None:
    folder = make_repository(tmp_path / "r", object_format=object_format)
    repo = Repository.open(str(folder))
    blob = objects.draft(repo, "blob", b"hello\n")
    with Reader(repo) as reader:
        changes = {"tasks/0000/000042.md": (objects.FILE, blob.oid)}
        root, trees = objects.graft(reader, repo, _root(folder), changes)
    commit = objects.draft(repo, "commit", objects.commit_bytes(root, (), ADA, ADA, b"subject\n"))
    objects.write(repo, [blob, *trees, commit])
    assert git(folder, "ls-tree", "-r", "--name-only", commit.oid).splitlines() == [
        "app.txt",
        "tasks/0000/000042.md",
    ]
    assert git(folder, "fsck", "--strict", "--no-dangling", commit.oid) == ""


def test_a_commit_of_ours_is_the_one_git_would_make(folder: Path, repo: Repository) -> None:
    head = git(folder, "rev-parse", "HEAD")
    theirs = git(folder, "commit-tree", _root(folder), "-p", head, "-m", "Subject")
    data = objects.commit_bytes(_root(folder), [head], ADA, ADA, b"Subject\n")
    assert objects.object_id(repo, "commit", data) == theirs


@pytest.mark.parametrize(
    ("name", "mail", "written"),
    [
        ("Ada", "a@b", b"Ada <a@b>"),
        ("  Ada \t L.  ", " a @ b ", b"Ada L <a@b>"),
        ("A<d>a\nevil 1 +0000", "a@b>\n", b"Ada evil 1 +0000 <a@b>"),
        ("\x00\x1f\x7f", "", b"unknown <unknown>"),
        ("...", "<>", b"unknown <unknown>"),
        ("Ad\u00e4 \udcff", "a@b", b"Ad\xc3\xa4 \xff <a@b>"),
    ],
)
def test_names_are_cleaned_of_what_would_break_a_commit(
    folder: Path, repo: Repository, name: str, mail: str, written: bytes
) -> None:
    who = Signature(name, mail, 5, "-0100")
    data = objects.commit_bytes(_root(folder), [], who, ADA, b"m\n")
    commit = objects.draft(repo, "commit", data)
    objects.write(repo, [commit])
    assert data.splitlines()[1] == b"author " + written + b" 5 -0100"
    assert git(folder, "fsck", "--strict", "--no-dangling", commit.oid) == ""


def test_a_message_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold a NUL"):
        objects.commit_bytes("a" * 40, [], ADA, ADA, b"a\0b")


def test_a_tree_is_sorted_as_git_sorts_it(folder: Path, repo: Repository) -> None:
    blob = git(folder, "rev-parse", "HEAD:app.txt")
    tree = git(folder, "rev-parse", "HEAD:lib")
    rows = [Entry("40000", "a", tree), Entry("100644", "a.b", blob), Entry("100644", "a0", blob)]
    lines = [f"040000 tree {tree}\ta\0", f"100644 blob {blob}\ta.b\0", f"100644 blob {blob}\ta0\0"]
    theirs = git(folder, "mktree", "-z", stdin="".join(lines))
    assert objects.object_id(repo, "tree", objects.tree_bytes(rows[::-1])) == theirs


def test_a_tree_is_read_as_it_was_written() -> None:
    rows = (
        Entry("100755", "b \udcff\n", "01" * 20),
        Entry("120000", "link", "02" * 20),
        Entry("40000", "z", "03" * 20),
    )
    assert objects.parse_tree(objects.tree_bytes(rows), 20) == rows


# ------------------------------------------------------------------------------ grafting


def _paths(folder: Path, root: str) -> dict[str, str]:
    rows = git(folder, "ls-tree", "-r", root).splitlines()
    return {row.partition("\t")[2]: row.split()[2] for row in rows}


def test_a_graft_that_changes_nothing_makes_nothing(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    same = {"lib/a.txt": ("100644", git(folder, "rev-parse", "HEAD:lib/a.txt"))}
    assert objects.graft(reader, repo, _root(folder), same) == (_root(folder), [])


def test_removing_what_is_not_there_makes_nothing(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    gone = {"none/at/all": None, "none": None, "app.txt/below": None}
    assert objects.graft(reader, repo, _root(folder), gone) == (_root(folder), [])


def test_the_last_file_takes_its_folder_along(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    gone = {"lib/a.txt": None, "lib/b.txt": None}
    root, trees = objects.graft(reader, repo, _root(folder), gone)
    objects.write(repo, trees)
    assert (list(_paths(folder, root)), len(trees)) == (["app.txt"], 1)


def test_a_tree_without_anything_is_the_empty_tree(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    gone = dict.fromkeys(FILES)
    root, trees = objects.graft(reader, repo, _root(folder), gone)
    assert (root, trees) == (git(folder, "mktree", stdin=""), [Draft(root, "tree", b"")])


def test_a_graft_can_begin_with_nothing(repo: Repository, reader: Reader, folder: Path) -> None:
    blob = git(folder, "rev-parse", "HEAD:app.txt")
    root, trees = objects.graft(reader, repo, None, {"a/b/c.txt": ("100644", blob)})
    objects.write(repo, trees)
    assert _paths(folder, root) == {"a/b/c.txt": blob}


def test_a_file_makes_way_for_a_folder_and_back(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    blob = git(folder, "rev-parse", "HEAD:app.txt")
    changes = {"app.txt/inner": ("100644", blob), "lib": ("100644", blob)}
    root, trees = objects.graft(reader, repo, _root(folder), changes)
    objects.write(repo, trees)
    assert _paths(folder, root) == {"app.txt/inner": blob, "lib": blob}


def test_one_graft_stands_on_another_before_anything_is_written(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    drafts: dict[str, Draft] = {}
    blob = git(folder, "rev-parse", "HEAD:app.txt")
    root = _root(folder)
    made: list[Draft] = []
    for number in range(3):
        change = {f"tasks/0000/{number}.md": ("100644", blob)}
        root, trees = objects.graft(reader, repo, root, change, drafts)
        made += trees
    objects.write(repo, made)
    assert list(_paths(folder, root)) == [*FILES, *(f"tasks/0000/{n}.md" for n in range(3))]


def test_only_the_folders_on_the_way_are_made_anew(
    folder: Path, repo: Repository, reader: Reader
) -> None:
    blob = git(folder, "rev-parse", "HEAD:app.txt")
    _, trees = objects.graft(reader, repo, _root(folder), {"a/b/c": ("100644", blob)})
    assert [len(objects.parse_tree(tree.data, 20)) for tree in trees] == [1, 1, 3]


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/", "../a", "a/./b", ".git/config", "a\0b"])
def test_a_path_that_git_would_refuse_is_refused(
    folder: Path, repo: Repository, reader: Reader, path: str
) -> None:
    with pytest.raises(ValueError, match="cannot be a path in a tree"):
        objects.graft(reader, repo, _root(folder), {path: None})


_NAMES = st.sampled_from(["a", "a.b", "a0", "b"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)
_CHANGES = st.lists(
    st.dictionaries(_PATHS, st.sampled_from(["x", "y", None]), max_size=4), max_size=5
)


class _Nothing:
    """A repository that has written no tree yet."""

    def tree(self, oid: str) -> tuple[Entry, ...]:
        raise AssertionError(f"{oid} was never written")


def _apply(files: dict[str, str], path: str, value: str | None) -> None:
    """Changes a flat listing as a graft changes a tree."""
    if value is None:
        for name in [n for n in files if n == path or n.startswith(path + "/")]:
            del files[name]
        return
    parts = path.split("/")
    above = {"/".join(parts[:n]) for n in range(1, len(parts))}
    for name in [n for n in files if n in above or n == path or n.startswith(path + "/")]:
        del files[name]
    files[path] = value


def _flat(
    drafts: dict[str, Draft], root: str, names: dict[str, str], at: str = ""
) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in objects.parse_tree(drafts[root].data, 20):
        if entry.mode == objects.TREE:
            found |= _flat(drafts, entry.oid, names, f"{at}{entry.name}/")
        else:
            found[at + entry.name] = names[entry.oid]
    return found


@settings(max_examples=200, deadline=None)
@given(_CHANGES, st.booleans())
def test_grafts_do_to_trees_what_they_say(
    steps: list[dict[str, str | None]], remembered: bool
) -> None:
    repo = Repository(git_dir="/", common_dir="/", worktree=None, bare=True)
    ids = {text: objects.object_id(repo, "blob", text.encode()) for text in ("x", "y")}
    drafts: dict[str, Draft] = {}
    rows: dict[str, objects.Rows] | None = {} if remembered else None
    files: dict[str, str] = {}
    root: str | None = None
    for step in steps:
        for path, value in step.items():
            _apply(files, path, value)
            change = {path: None if value is None else (objects.FILE, ids[value])}
            root, _ = objects.graft(_Nothing(), repo, root, change, drafts, rows)
    told = {} if root is None else _flat(drafts, root, {oid: text for text, oid in ids.items()})
    assert told == files


# ------------------------------------------------------------------------------- writing


def test_a_few_objects_become_loose_ones_and_many_become_a_pack(
    folder: Path, repo: Repository
) -> None:
    before = git(folder, "count-objects", "-v").splitlines()
    objects.write(repo, [objects.draft(repo, "blob", b"%d" % n) for n in range(100)])
    loose = git(folder, "count-objects", "-v").splitlines()
    objects.write(repo, [objects.draft(repo, "blob", b"x%d" % n) for n in range(101)])
    packed = git(folder, "count-objects", "-v").splitlines()
    assert [line for line in before + loose + packed if line.startswith(("count", "in-pack"))] == [
        "count: 6", "in-pack: 0", "count: 106", "in-pack: 0", "count: 106", "in-pack: 101",
    ]  # fmt: skip


def test_a_pack_of_ours_may_be_collected_like_any_other(folder: Path, repo: Repository) -> None:
    objects.write(repo, [objects.draft(repo, "blob", b"%d" % n) for n in range(101)])
    names = [path.suffix for path in (folder / ".git/objects/pack").iterdir()]
    assert ".keep" not in names


@pytest.mark.parametrize("size", [0, 15, 16, 2047, 2048, 300_000])
def test_an_object_of_any_size_survives_the_way(
    folder: Path, repo: Repository, reader: Reader, size: int
) -> None:
    new = objects.draft(repo, "blob", os.urandom(size))
    objects.write(repo, [new])
    assert reader.blob(new.oid) == new.data


def test_writing_nothing_runs_no_process(repo: Repository) -> None:
    before = repo.calls
    objects.write(repo, [])
    assert repo.calls == before


def test_an_object_may_come_twice(repo: Repository, reader: Reader) -> None:
    new = objects.draft(repo, "blob", b"twice")
    objects.write(repo, [new, new])
    assert reader.blob(new.oid) == b"twice"


def test_writing_works_in_a_bare_repository(tmp_path: Path) -> None:
    repo = Repository.open(str(make_repository(tmp_path / "b.git", bare=True)))
    new = objects.draft(repo, "blob", b"bare")
    objects.write(repo, [new])
    with Reader(repo) as reader:
        assert reader.blob(new.oid) == b"bare"


def test_a_folder_that_cannot_be_written_is_told(folder: Path, repo: Repository) -> None:
    target = folder / ".git/objects"
    target.rename(folder / ".git/kept")
    target.write_text("not a folder", encoding="ascii")
    with pytest.raises(GitError):
        objects.write(repo, [objects.draft(repo, "blob", b"x")])


_COLLECTING = """
import sys, subprocess
while True:
    subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=sys.argv[1],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""


def test_writes_succeed_beside_a_collector_that_removes_folders(
    folder: Path, repo: Repository
) -> None:
    collector = subprocess.Popen([sys.executable, "-c", _COLLECTING, str(folder)])
    try:
        for number in range(60):
            objects.write(repo, [objects.draft(repo, "blob", b"%d" % number)])
    finally:
        collector.kill()
        collector.wait()


def test_what_is_missing_is_told_and_nothing_else(folder: Path, repo: Repository) -> None:
    here = git(folder, "rev-parse", "HEAD")
    gone = ["1" * 40, "2" * 40]
    assert objects.missing(repo, [gone[0], here, gone[1], gone[0]]) == gone


def test_nothing_is_missing_of_nothing(repo: Repository) -> None:
    before = repo.calls
    assert (objects.missing(repo, []), repo.calls) == ([], before)
