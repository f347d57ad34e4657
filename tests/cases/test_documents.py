"""Documents: values YAML likes to guess, bodies that look like headers, bombs, texts of any kind."""

from __future__ import annotations

import json
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cases.ground import Team, error_of, path_of
from tests.support.cli import COMMAND, environment, tasks

HEADER = {
    "id": '"000042"',
    "uid": '"' + "0123456789abcdef" * 2 + '"',
    "title": '"A title"',
    "state": "NEW",
    "entered_at": '"2027-01-15T08:00:00Z"',
    "created_at": '"2027-01-15T08:00:00Z"',
    "created_by": '"Ada"',
}


def a_document(number: int = 42, body: str = "Do it.\n", extra: str = "", **fields: str) -> bytes:
    """Returns a document as somebody with an editor might leave it."""
    uid = f'"{number:032x}"'
    header = {**HEADER, "id": f'"{number:06d}"', "uid": uid, **fields}
    lines = "".join(f"{key}: {value}\n" for key, value in header.items())
    return f"---\n{lines}{extra}---\n{body}".encode()


def by_hand(team: Team, documents: dict[int, bytes]) -> None:
    team.write_by_hand({path_of(str(number)): data for number, data in documents.items()})


def rows(team: Team) -> tuple[dict[str, Any], list[Any]]:
    """Returns the listed tasks by id, and the problems."""
    answer = team.manager("list", "--all", "--json").json()
    return {row["id"]: row for row in answer["data"]}, answer.get("problems", [])


GUESSED = {
    "id": {},
    "title: no": {"title": "no"},
    "title: 2026-01-02": {"title": "2026-01-02"},
    "title: 12:30": {"title": "12:30"},
    "title: 000123": {"title": "000123"},
    "title: 0x1F": {"title": "0x1F"},
    "title: 1e3": {"title": "1e3"},
    "title: ~": {"title": "~"},
    "title: .inf": {"title": ".inf"},
    "title: @x": {"title": "@x"},
    "title: a: b": {"title": "a: b"},
    "title: - x": {"title": "- x"},
    "title: [": {"title": "["},
    "title: {a": {"title": "{a"},
    "title: x # y": {"title": "x # y"},
    "title: %TAG": {"title": "%TAG"},
    "title: !x": {"title": "!x"},
    "title: &x": {"title": "&x"},
    "title: *x": {"title": "*x"},
    "title: |": {"title": "|"},
    "title: ' x": {"title": "' x"},
    "assignee: on": {"extra": "assignee: on\n"},
    "deps: [000041]": {"extra": "depends_on: [000041]\n"},
    "priority: yes": {"extra": "priority: yes\n"},
    "priority: 01": {"extra": "priority: 01\n"},
    "priority: 1.0": {"extra": "priority: 1.0\n"},
    "labels: [on]": {"extra": "labels: [on]\n"},
    "labels: a": {"extra": "labels: a\n"},
    "created_at": {"created_at": "2027-01-15T08:00:00Z"},
    "tab": {"extra": "\tpriority: 1\n"},
    "duplicate": {"extra": 'title: "Other"\n'},
    "anchor": {"extra": "labels: &a [x]\n"},
    "merge": {"extra": "<<: {priority: 1}\n"},
    "tag": {"extra": 'assignee: !!str "x"\n'},
    "unknown": {"extra": "priorty: 1\n"},
    "content": {"extra": 'content: "x"\n'},
    "handler": {"extra": 'handler: "x"\n'},
    "metadata": {"extra": 'metadata: "x"\n'},
}


def test_a_value_is_what_was_written_or_is_refused_with_its_line(team: Team) -> None:
    """Guards against 000042 that becomes 34, `no` that becomes false, and times that shift."""
    neighbour = team.new("A neighbour")
    spelled = dict(enumerate(GUESSED, 42))
    documents = {n: a_document(n, **GUESSED[name]) for n, name in spelled.items() if n != 42}
    documents |= {41: a_document(41), 42: a_document(42, id="000042")}
    by_hand(team, documents)
    listed, problems = rows(team)
    refused = {problem["task"] for problem in problems}
    assert {neighbour, "000041"} <= set(listed)
    assert set(listed) | refused == {neighbour, *(f"{number:06d}" for number in documents)}
    verified = team.manager("fsck", check=9)
    for number, name in spelled.items():
        task, title = f"{number:06d}", GUESSED[name].get("title", "A title")
        if task in listed:
            assert listed[task]["title"] == title, name
            continue
        error = error_of(team.manager("show", task, "--json", check=9))
        assert path_of(task) in error["message"], name
        assert "line" in error["message"], name
        assert path_of(task) in verified.out + verified.err, name


def test_documents_written_by_hand_keep_their_lines(team: Team) -> None:
    """Guards against one transition that rewrites lines which have nothing to do with it."""
    own = 'labels:\n  - "b"\n  - "a"\nx-team: {"lead": "Ada"}\nx-when: "2026-01-02"\n'
    by_hand(team, {41: a_document(41), 42: a_document(42, extra=f'depends_on: ["000041"]\n{own}')})
    team.manager("edit", "41", "--title", "First of them")
    before = team.document("42")
    team.manager("submit", "42", "--enter", "work")
    lines = set(before.decode().splitlines()) ^ set(team.document("42").decode().splitlines())
    assert {line.split(":")[0] for line in lines} <= {"state", "entered_at", "enters"}
    shown = team.show("42")
    assert (shown["state"], shown["depends_on"], shown["x-team"]) == (
        "BLOCKED", ["000041"], '{"lead": "Ada"}',
    )  # fmt: skip
    team.manager("fsck")


BODIES = {
    "fences": (
        "\n\n    indented code\n---\n----\n+++\n```yaml\nid: 000042\n---\n```\ntwo  \n  \nend\n\n\n"
    ),
    "no line end": "First.\n---\nlast line without an end",
    "only blank lines": "\n\n\n",
    "only a fence": "---",
    "trailers": "Event: submit\nTask: 000001\nRole: manager\n\nSigned-off-by: X <x@example.org>\n",
    "carriage returns": "one\r\ntwo\rthree\r\n\r\n",
    "a nul": "before\0after\n",
    "one long line": "x" * 1_000_000 + "\n",
    "right to left": "שלום עולם \u202e abc\n\u2066x\u2069\n",
    "emoji": "👩‍👩‍👧‍👦 \U0001f3f4\u200d\u2620\ufe0f é e\u0301\n",
    "byte order mark": "\ufeffbody\n",
    "conflict markers": "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
    "headings of ours": "## Design\n\nNot ours.\n\n## Todos\n\n# Review findings\n\n- x\n",
    "form feed": "a\x0cb\x0bc\x1cd\x85e\u2028f\u2029g\n",
    "tabs and blanks": "\t tab  \n   \n\t\n",
}


RARE = (
    "only a fence",
    "tabs and blanks",
    "emoji",
    "conflict markers",
    "form feed",
    "one long line",
)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow) if kind in RARE else kind for kind in BODIES],
)
def test_no_verb_changes_a_byte_of_the_body(team: Team, home: Path, kind: str) -> None:
    """Guards against tools that reflow, trim or reinterpret what somebody wrote."""
    body = BODIES[kind].encode()
    (home / "body").write_bytes(body)
    task = team.manager("new", "One", "--enter", "work", "-F", str(home / "body")).out.strip()
    steps = (
        ("note", task, "A note."), ("edit", task, "--title", "Two"),
        ("edit", task, "--set", "priority=0"), ("hold", task, "-m", "Stop."), ("resume", task),
    )  # fmt: skip
    assert team.document(task).endswith(b"\n---\n" + body)
    for step in steps:
        team.manager(*step)
        assert team.document(task).endswith(b"\n---\n" + body), step
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    stored = team.document(task).partition(b"\n---\n")[2]
    assert stored.startswith(body)
    assert stored[len(body) :].strip() == b"## Implementation Notes\n\nDone."
    shown = team.manager("show", task, "--json").json()["data"]["body"]
    assert shown.encode("utf-8", "surrogateescape") == stored
    team.manager("fsck")


@pytest.mark.parametrize(
    "kind", ["fences", "no line end", "only a fence", "carriage returns", "headings of ours"]
)
def test_a_draft_that_is_sent_back_leaves_no_trace_in_the_body(
    team: Team, home: Path, kind: str
) -> None:
    """Guards against rejected designs that pile up in the task, or take its text along."""
    body = BODIES[kind].encode()
    (home / "body").write_bytes(body)
    words = ("new", "One", "--enter", "design", "-F", str(home / "body"))
    task = team.manager(*words).out.strip()
    for number in (1, 2):
        tree = team.start(task, "dora")
        team.agent("dora", "submit", "-m", f"Design {number}.", at=tree)
        assert team.document(task).partition(b"\n---\n")[2].startswith(body)
        team.reject(task, "No.")
        assert team.document(task).partition(b"\n---\n")[2] == body
    assert team.state(task) == "HELD_DESIGN"
    team.manager("resume", task)
    tree = team.start(task, "dora")
    assert b"Design 2." in (tree.parent / "DRAFT.md").read_bytes()


TITLES = [
    "no", "000123", "12:30", "@x", "a: b", "- x", "[", "]", "{}", '"quoted"', "'single'", "#1",
    "---", "...", "null", "~", "\\n", "a\\", "%s %(id)", "-x", "--help", "é", "e\u0301", "日本語",
    "👩‍👩‍👧‍👦", "a\u00a0b", "x" * 500, "true", "0", ".", "* x", "| x", "> x", "`x`", "$HOME",
]  # fmt: skip


def test_every_title_comes_back_as_it_was_given(team: Team) -> None:
    """Guards against titles that YAML, a shell or a format string reads as something else."""
    made = [team.manager("new", "--title", title).out.strip() for title in TITLES]
    listed, problems = rows(team)
    assert problems == []
    assert [listed[task]["title"] for task in made] == TITLES
    team.manager("fsck")


@pytest.mark.parametrize("title", ["", " ", "\n", "a\nb", "x" * 501, "\t"])
def test_a_title_that_is_none_is_refused(team: Team, title: str) -> None:
    """Guards against tasks nobody can name."""
    before = team.tip()
    team.manager("new", "--title", title, check=2)
    assert team.tip() == before


BROKEN = {
    "conflict markers": b"<<<<<<< ours\n" + a_document() + b"=======\n>>>>>>> theirs\n",
    "conflict in the header": a_document(extra='<<<<<<< ours\nlabels: ["a"]\n=======\n>>>>>>> x\n'),
    "byte order mark": b"\xef\xbb\xbf" + a_document(),
    "crlf": a_document().replace(b"\n", b"\r\n"),
    "no closing fence": a_document().rpartition(b"---")[0],
    "nothing": b"",
    "no header": b"Just a text.\n",
    "a list": b"---\n- a\n---\n",
    "a word": b"---\nword\n---\n",
    "not utf-8": a_document(title='"\xe9"').decode().encode("latin-1"),
    "binary": bytes(range(256)),
    "another id": a_document(7),
    "bad state": a_document(state="DOING"),
    "claimed without claim": a_document(state="WORK", extra='claimed_by: "x"\n'),
    "blocked without entry": a_document(state="BLOCKED"),
    "closed among the open": a_document(state="CLOSED", extra="outcome: landed\n"),
    "waits for itself": a_document(extra='depends_on: ["000042"]\n'),
    "date of the next century": a_document(entered_at='"10000-01-01T00:00:00Z"'),
}


def test_broken_documents_are_named_and_stop_nobody_else(team: Team) -> None:
    """Guards against one bad file that hides or stops all the others, or is silently skipped."""
    good = team.new("Good")
    kinds = dict(enumerate(BROKEN, 42))
    spelled = {
        n: BROKEN[kind].replace(b'"000042"', f'"{n:06d}"'.encode()) for n, kind in kinds.items()
    }
    by_hand(team, spelled)
    listed, problems = rows(team)
    assert set(listed) == {good}
    assert sorted(problem["task"] for problem in problems) == [f"{n:06d}" for n in kinds]
    for number, kind in kinds.items():
        error = error_of(team.manager("show", str(number), "--json", check=9))
        assert (error["name"], error["task"]) == ("CORRUPT", f"{number:06d}"), kind
        assert path_of(str(number)) in error["message"], kind
        assert error["hint"], kind
    team.manager("fsck", check=9)
    for verb in ("status", "inbox", "ready"):
        team.manager(verb)
    team.manager("note", good, "Life goes on.")
    team.work(good, {"new.txt": "new\n"})
    team.manager("fsck")


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN, ids=list(BROKEN))
def test_a_broken_document_alone_is_named(team: Team, kind: str) -> None:
    """Guards against a problem that is only seen because others are there."""
    by_hand(team, {42: BROKEN[kind]})
    listed, problems = rows(team)
    assert (listed, [problem["task"] for problem in problems]) == ({}, ["000042"])
    team.manager("note", team.new("Good"), "Life goes on.")
    team.manager("fsck")


def bombs() -> dict[int, bytes]:
    """Returns documents that take a naive reader down."""
    levels = "".join(
        f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else '1'}]\n" for n in range(9)
    )
    deps = ", ".join(f'"{n:06d}"' for n in range(1000, 6000))
    return {
        42: a_document(42, extra=levels),
        43: a_document(43, body="x" * (20 << 20)),
        44: a_document(44, extra=f"depends_on: [{deps}]\n"),
        45: a_document(45, extra=f"x-deep: {'[' * 5000}{']' * 5000}\n"),
        46: a_document(46, extra="x-tag: !!python/object/apply:os.system ['touch owned']\n"),
        47: a_document(47, extra='content: "x"\nhandler: "y"\n'),
        48: a_document(48, extra=f"x-deep: {'{a: ' * 5000}1{'}' * 5000}\n"),
        49: a_document(49, extra="".join(f"{' ' * n}x-{n}:\n" for n in range(900))),
        50: a_document(50, extra=f"x-number: {'9' * 100_000}\n"),
        51: a_document(51, extra='x-text: "' + "\\u0041" * 100_000 + '"\n'),
        52: a_document(52, extra="".join(f"x-{n}: 1\n" for n in range(100_000))),
    }


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (500 << 20, 500 << 20))


@pytest.mark.slow
def test_bombs_and_bricks_take_nobody_down(team: Team) -> None:
    """Guards against documents that eat all memory, all stack or all time."""
    good = team.new("Good")
    by_hand(team, bombs())
    for words in (("list", "--json"), ("show", good), ("fsck",), ("status",), ("note", good, "x")):
        began = time.monotonic()
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=team.folder,
            env=environment(),
            capture_output=True,
            check=False,
            timeout=30,
            preexec_fn=limited,
        )
        assert time.monotonic() - began < 10
        assert done.returncode in (0, 9), (words, done.stderr[-2000:])
        assert b"Traceback" not in done.stderr
        if words[0] == "list":
            answer = json.loads(done.stdout)
            assert good in [row["id"] for row in answer["data"]]
            told = {problem["task"] for problem in answer["problems"]}
            assert {f"{number:06d}" for number in (42, 43, 44, 46, 47)} <= told
    for number in bombs():
        shown = tasks(team.folder, "show", str(number), check=None, timeout=20)
        assert shown.status in (0, 4, 9), shown
        assert "Traceback" not in shown.err
    assert not (team.folder / "owned").exists()


def test_a_body_over_the_limit_is_refused_before_it_is_written(team: Team, home: Path) -> None:
    """Guards against a document that is written and can then be read by nobody."""
    (home / "body").write_bytes(b"x" * (5 << 20))
    before = team.tip()
    refused = team.manager("new", "One", "-F", str(home / "body"), "--json", check=2)
    assert "4194304" in error_of(refused)["message"]
    assert team.tip() == before


def test_files_that_are_no_documents_are_told_and_harmless(team: Team) -> None:
    """Guards against links, submodules and stray files in the ledger that a reader follows."""
    task = team.new("Good")
    team.write_by_hand({
        "README.md": b"hello\n", "tasks/0000/000001.md.orig": b"x", "tasks/notes.txt": b"x",
        "tasks/0000/42.md": a_document(), "tasks/0001/000042.md": a_document(),
        "Tasks/0000/000042.md": a_document(), ".gitattributes": b"* text eol=crlf\n",
    })  # fmt: skip
    listed, _ = rows(team)
    assert set(listed) == {task}
    team.manager("fsck", check=9)
    team.manager("note", task, "Go on.")
    assert team.git("ls-tree", "-r", "--name-only", "gittasks", "--").split() == [
        "project.yaml", path_of(task),
    ]  # fmt: skip
    team.manager("fsck")


@pytest.mark.parametrize("claimed", [True, False])
def test_a_task_whose_document_was_broken_by_hand_is_not_said_to_be_unknown(
    team: Team, claimed: bool
) -> None:
    """Guards against `There is no task` about a task that somebody is at work on."""
    task = team.new("One")
    if claimed:
        team.start(task)
    team.write_by_hand({path_of(task): b"nothing\n"})
    for words in (("note", task, "x"), ("submit", task, "-m", "Done."), ("claim", task),
                  ("diff", task), ("hold", task, "-m", "x"), ("prime", task)):  # fmt: skip
        error = error_of(team.agent("wim", *words, "--json", check=9))
        assert path_of(task) in error["message"]
        assert "recover" in error["hint"]
    team.manager("recover")
    team.manager("note", task, "It is back.")
    assert team.show(task)["claimed_by"] == ("wim" if claimed else None)
