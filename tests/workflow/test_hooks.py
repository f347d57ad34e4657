"""The hooks against real git: who may move the ledger where, and what a commit message gets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gittasks.domain.events import Claimed, Created, Event, Submitted
from gittasks.ledger.ledger import Ledger
from gittasks.plumbing import objects, refs
from tests.support.builders import ACTOR, BRANCH, NOW, a_task, hexadecimal, write_ledger
from tests.support.cli import CHECKOUT, tasks_inprocess
from tests.support.git import git, make_repository
from tests.support.hooks import Said, by_hand, forged, git_says, install, tool
from tests.support.ledgers import a_request, asks, begin, open_ledger

MIB = 1024 * 1024


class Pair(NamedTuple):
    """A bare repository with its hooks, and a clone without any that pushes whatever it likes."""

    server: Path
    clone: Path
    ledger: Ledger

    def push(self, *words: str, **env: str) -> Said:
        """Pushes, and returns what came back."""
        return git_says(self.clone, "push", "-q", "origin", *(words or ("gittasks",)), **env)

    @property
    def there(self) -> str:
        """Returns where the ledger of the server is, nothing where there is none."""
        return git(self.server, "rev-parse", "-q", "--verify", BRANCH, check=False)


@pytest.fixture
def path(home: Path) -> str:
    """A search path on which git finds the tool."""
    return tool(home)


@pytest.fixture
def pair(home: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """A server that has verified the beginning of a ledger with one task."""
    monkeypatch.setenv("PATH", path)
    server = make_repository(home / "server.git", bare=True, commit=False)
    install(server, "--server")
    clone = make_repository(home / "clone")
    git(clone, "remote", "add", "origin", str(server))
    ledger = begin(clone)
    ledger.append(asks(a_request()))
    made = Pair(server, clone, ledger)
    assert made.push("gittasks", "master") == (0, "")
    yield made
    ledger.close()


# ------------------------------------------------------------------------- what the server takes


def test_the_server_has_verified_the_first_push(pair: Pair) -> None:
    assert pair.there == pair.ledger.tip


def test_valid_events_pass(pair: Pair) -> None:
    pair.ledger.append(asks(a_request(2), a_request(3)))
    assert pair.push() == (0, "")
    assert pair.there == pair.ledger.tip


def the_task_handed_in(ledger: Ledger) -> str:
    """Says that the task went from NEW to CHECK, which no row of the machine allows."""
    return forged(ledger, an_event(Submitted(), "worker", "NEW", "CHECK", commit="c" * 40))


def an_event(change: object, role: str, source: str, target: str, **more: str) -> Event:
    return Event(
        event_id=hexadecimal(f"{role} {target} {more}"),
        at=NOW,
        role=role,  # type: ignore[arg-type]
        host="test",
        change=change,  # type: ignore[arg-type]
        source=source,  # type: ignore[arg-type]
        target=target,  # type: ignore[arg-type]
        **{"actor": "mallory", "task": "000001", "uid": hexadecimal("uid 1"), **more},  # type: ignore[arg-type]
    )


DISPATCHED = ("manager", "NEW", "WORK")
AT_WORK = ("worker", "WORK", "WORK")


def taken(by: str) -> Event:
    change = Claimed("2099-01-01T00:00:00Z", "task/000001", "c" * 40, "c" * 40)
    return an_event(change, *AT_WORK, actor=by, claim=hexadecimal(by))


def a_claim_of_what_another_holds(ledger: Ledger) -> str:
    return forged(ledger, an_event(Submitted(), *DISPATCHED), taken("sam"), taken("mallory"))


def a_submit_under_a_claim_of_nobody(ledger: Ledger) -> str:
    more = {"claim": hexadecimal("mallory"), "commit": "d" * 40}
    submitted = an_event(Submitted(), "worker", "WORK", "CHECK", **more)
    return forged(ledger, an_event(Submitted(), *DISPATCHED), taken("sam"), submitted)


def a_large_document(ledger: Ledger) -> str:
    return by_hand(ledger, b"edit\n", {"tasks/0000/000001.md": b"x" * (4 * MIB + 1)})


def a_large_message(ledger: Ledger) -> str:
    return by_hand(ledger, b"x\n" + b"x" * MIB, {})


def a_merge(ledger: Ledger) -> str:
    note = ledger.append(asks(a_request(2))).before
    return by_hand(ledger, b"merge\n", {}, parents=[note or ""])


def a_foreign_file(ledger: Ledger) -> str:
    return by_hand(ledger, b"edit\n", {"\x1b[31mREADME": b"hi\n"})


def a_link(ledger: Ledger) -> str:
    return by_hand(ledger, b"edit\n", {"template.md": b"/etc/passwd"}, mode="120000")


def a_program(ledger: Ledger) -> str:
    return by_hand(ledger, b"edit\n", {"template.md": b"#!/bin/sh\n"}, mode="100755")


def an_event_twice(ledger: Ledger) -> str:
    return by_hand(ledger, ledger.reader.commit(ledger.tip).message, {})


def a_document_that_no_event_wrote(ledger: Ledger) -> str:
    ledger.append(asks(a_request(2)))
    text = ledger.reader.commit(ledger.tip).message.replace(b"000002", b"000003")
    return by_hand(ledger, text, {"tasks/0000/000001.md": b"no header\n"})


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (the_task_handed_in, "The step is not legal"),
        (a_claim_of_what_another_holds, "The step is not legal"),
        (a_submit_under_a_claim_of_nobody, "The step is not legal"),
        (a_large_document, "has 4194305 bytes; a document has at most 4194304."),
        (a_large_message, "a message has at most 1048576."),
        (a_merge, "The commit has 2 parents, not just the one before."),
        (a_foreign_file, "is no valid event"),
        (a_link, "is no valid event"),
        (a_program, "is no valid event"),
        (an_event_twice, "is no valid event"),
        (a_document_that_no_event_wrote, "is no valid event"),
    ],
)
def test_what_is_no_valid_event_is_refused(
    pair: Pair, forge: Callable[[Ledger], str], words: str
) -> None:
    before = pair.there
    forge(pair.ledger)
    said = pair.push()
    assert (said.status, pair.there) == (1, before)
    assert words in said.err
    told = [line for line in said.err.splitlines() if line.startswith("remote: ")]
    assert [line.split(":")[1].strip() for line in told] == ["error", "hint", "error"]
    assert all(line.isprintable() for line in told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((":gittasks",), "remote: error: The ledger is not deleted by a push."),
        (("-f", "gittasks~1:gittasks"), "remote: error: The push would throw away events: "),
        (("-f", "master:gittasks"), "remote: error: The push would throw away events: "),
    ],
)
def test_the_ledger_is_neither_deleted_nor_rewritten(
    pair: Pair, words: tuple[str, ...], told: str
) -> None:
    before = pair.there
    said = pair.push(*words)
    assert (said.status, pair.there) == (1, before)
    assert said.err.startswith(told)


def test_a_first_push_has_to_begin_as_every_ledger_does(pair: Pair, home: Path) -> None:
    server = make_repository(home / "other.git", bare=True, commit=False)
    install(server, "--server")
    repo = pair.ledger.repo
    text = objects.commit_bytes(objects.object_id(repo, "tree", b""), [], ACTOR, ACTOR, b"mine\n")
    root = objects.draft(repo, "commit", text)
    objects.write(repo, [root, objects.draft(repo, "tree", b"")])
    refs.compare_and_swap(repo, BRANCH, root.oid, pair.ledger.tip, "test")
    write_ledger(repo, [a_task()], parent=root.oid)
    said = git_says(pair.clone, "push", "-q", str(server), "gittasks")
    assert said.status == 1
    assert " is not one of a ledger: it begins with " in said.err
    assert git(server, "for-each-ref") == ""


def test_the_rest_of_the_push_goes_on(pair: Pair) -> None:
    the_task_handed_in(pair.ledger)
    git(pair.clone, "commit", "-q", "--allow-empty", "-m", "More")
    assert pair.push("gittasks", "master").status == 1
    assert git(pair.server, "rev-parse", "master") == git(pair.clone, "rev-parse", "master")


def test_other_refs_never_meet_the_tool(pair: Pair, home: Path) -> None:
    (home / "bin" / "git-tasks").write_text(f"#!/bin/sh\ntouch {home}/met\nexit 1\n")
    assert pair.push("master:work", "master:refs/tags/gittasks", "master:x/gittasks") == (0, "")
    assert pair.push("-f", ":work", "master:refs/gittasks/leases/000001") == (0, "")
    assert not (home / "met").exists()
    assert pair.push("-f", f"gittasks~1:{BRANCH}").status == 1
    assert (home / "met").exists()


def test_a_server_that_has_lost_the_tool_takes_no_events(pair: Pair, home: Path) -> None:
    (home / "bin" / "git-tasks").unlink()
    before = pair.there
    pair.ledger.append(asks(a_request(2)))
    said = pair.push("gittasks", "master:work")
    assert (said.status, pair.there) == (1, before)
    assert said.err.startswith("remote: git tasks is missing on this server, so the ledger cannot")
    assert git(pair.server, "rev-parse", "work") == git(pair.clone, "rev-parse", "master")


def test_the_server_keeps_a_ledger_of_another_name(home: Path, pair: Pair) -> None:
    git(pair.server, "config", "gittasks.branch", "tasks")
    assert pair.push("gittasks:tasks") == (0, "")
    assert pair.push("-f", "master:gittasks") == (0, "")
    assert pair.push("-f", "master:tasks").status == 1


def test_a_hook_that_runs_before_the_objects_are_taken_sees_them(pair: Pair) -> None:
    hooks = pair.server / "hooks"
    (hooks / "update").unlink()
    (hooks / "pre-receive").write_text(
        '#!/bin/sh\nwhile read -r old new ref; do git tasks hook update "$ref" "$old" "$new"'
        " < /dev/null || exit 1; done\n"
    )
    (hooks / "pre-receive").chmod(0o755)
    pair.ledger.append(asks(a_request(2)))
    assert pair.push() == (0, "")
    before = pair.there
    bad = the_task_handed_in(pair.ledger)
    said = pair.push()
    assert (said.status, pair.there) == (1, before)
    assert "The step is not legal" in said.err
    assert git(pair.server, "cat-file", "-t", bad, check=False) == ""


def test_a_ledger_of_another_hash_is_verified_too(home: Path, pair: Pair) -> None:
    server = make_repository(home / "s.git", bare=True, commit=False, object_format="sha256")
    install(server, "--server")
    clone = make_repository(home / "c", object_format="sha256")
    ledger = begin(clone)
    ledger.append(asks(a_request()))
    assert git_says(clone, "push", "-q", str(server), "gittasks") == (0, "")
    the_task_handed_in(ledger)
    ledger.close()
    assert git_says(clone, "push", "-q", str(server), "gittasks").status == 1
    assert git_says(clone, "push", "-q", str(server), ":gittasks").status == 1


@pytest.mark.parametrize("forge", [a_foreign_file, a_document_that_no_event_wrote])
def test_what_came_before_the_hooks_does_not_stop_what_comes_after(
    pair: Pair, forge: Callable[[Ledger], str]
) -> None:
    (pair.server / "hooks" / "update").unlink()
    forge(pair.ledger)
    assert pair.push() == (0, "")
    install(pair.server, "--server")
    change = Created("Next")
    event = an_event(change, "manager", "NEW", "NEW", task="000007", uid=hexadecimal("7"))
    forged(pair.ledger, event._replace(source=None, body=b""))
    assert pair.push() == (0, "")


def test_the_server_has_no_state_of_a_clone(pair: Pair) -> None:
    assert not (pair.server / "gittasks" / "clone-id").exists()


# --------------------------------------------------------------- where the ledger moves in a clone


@pytest.fixture
def guarded(home: Path, path: str) -> Path:
    """A clone with the hooks of clones, on a branch besides the ledger."""
    clone = make_repository(home / "guarded")
    ledger = begin(clone)
    ledger.append(asks(a_request()))
    ledger.close()
    install(clone)
    return clone


BACKWARDS = [
    ("branch", "-f", "gittasks", "master"),
    ("update-ref", BRANCH, "gittasks~1"),
    ("update-ref", BRANCH, "master", "gittasks"),
    ("fetch", "-q", ".", "+master:gittasks"),
    ("push", "-q", "--no-verify", ".", "+master:gittasks"),
]


@pytest.mark.parametrize("words", BACKWARDS)
def test_the_ledger_moves_only_forward(guarded: Path, words: tuple[str, ...]) -> None:
    before = git(guarded, "rev-parse", "gittasks")
    said = git_says(guarded, *words)
    assert said.status != 0
    assert "refs/heads/gittasks moves forward only, and " in said.err
    assert git(guarded, "rev-parse", "gittasks") == before


def test_a_checked_out_ledger_is_not_amended_or_reset(guarded: Path, home: Path) -> None:
    git(guarded, "worktree", "add", "-q", str(home / "linked"), "gittasks")
    before = git(guarded, "rev-parse", "gittasks")
    for words in (("commit", "-q", "--amend", "-m", "x"), ("reset", "-q", "--hard", "HEAD~1")):
        assert "moves forward only" in git_says(home / "linked", *words).err
    assert git(guarded, "rev-parse", "gittasks") == before


@pytest.mark.parametrize(
    "words",
    [
        ("pack-refs", "--all", "--prune"),
        ("gc", "-q", "--prune=now"),
        ("worktree", "add", "-q", "../linked"),
        ("commit", "-q", "--allow-empty", "-m", "More"),
        ("branch", "gittasks-mine", "gittasks"),
        ("branch", "-f", "other", "master"),
        ("update-ref", BRANCH, "gittasks", "gittasks"),
        ("branch", "-q", "-D", "gittasks"),
    ],
)
def test_everything_else_goes_on_as_ever(guarded: Path, words: tuple[str, ...]) -> None:
    assert git_says(guarded, *words) == (0, "")


def test_the_ledger_is_packed_with_the_others(guarded: Path) -> None:
    git(guarded, "gc", "-q")
    assert not (guarded / ".git" / BRANCH).exists()
    assert f" {BRANCH}\n" in (guarded / ".git" / "packed-refs").read_text(encoding="ascii")


def test_the_tool_itself_goes_on_as_ever(guarded: Path) -> None:
    assert tasks_inprocess(guarded, "new", "Second").out == "000002\n"
    git(guarded, "commit", "-q", "--allow-empty", "-m", "More")
    tasks_inprocess(guarded, "fsck")


def test_a_commit_made_by_hand_on_top_passes(guarded: Path, home: Path) -> None:
    git(guarded, "worktree", "add", "-q", str(home / "linked"), "gittasks")
    assert git_says(home / "linked", "commit", "-q", "--allow-empty", "-m", "By hand") == (0, "")


def judged(folder: Path, state: str, *lines: str) -> Said:
    """Asks the script as git would, with these lines."""
    done = subprocess.run(
        [str(CHECKOUT / "hooks" / "reference-transaction"), state],
        cwd=folder,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    return Said(done.returncode, done.stderr)


def test_a_move_from_where_the_ledger_no_longer_is_is_refused(guarded: Path) -> None:
    """Only a process whose copy of the packed refs is stale asks for that."""
    tip, former = git(guarded, "rev-parse", "gittasks", "gittasks~1").split()
    git(guarded, "commit", "-q", "--allow-empty", "-m", "More")
    asked = f"{former} {tip} {BRANCH}"
    said = judged(guarded, "prepared", f"{tip} {tip} refs/heads/x", asked)
    assert (said.status, said.err.split("\n")[0]) == (
        1,
        f"git tasks: {BRANCH} is no longer at {former[:12]}, but at {tip[:12]}.",
    )
    assert judged(guarded, "committed", asked) == (0, "")
    assert judged(guarded, "prepared", f"{'0' * 40} {tip} {BRANCH}") == (0, "")
    assert judged(guarded, "prepared", f"{tip} {'0' * 40} {BRANCH}") == (0, "")


def test_a_replacement_of_a_commit_changes_no_answer(guarded: Path) -> None:
    tip = git(guarded, "rev-parse", "gittasks")
    git(guarded, "replace", "--graft", "master", tip)
    assert git_says(guarded, "update-ref", BRANCH, "master").status == 128


# ----------------------------------------------------------------------- what a clone pushes by hand


@pytest.fixture
def pushing(guarded: Path, home: Path) -> Path:
    """The guarded clone, with a remote that takes everything and has the whole ledger."""
    server = make_repository(home / "plain.git", bare=True, commit=False)
    git(guarded, "remote", "add", "origin", str(server))
    git(guarded, "push", "-q", "--no-verify", "origin", "master", "gittasks")
    return guarded


@pytest.mark.parametrize("with_tool", [True, False])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((":gittasks",), "This push would delete the ledger of the remote."),
        (
            ("+gittasks~1:gittasks",),
            "The ledger of the remote has events that this push would throw away.",
        ),
        (
            ("--force", "HEAD@{0}:refs/heads/gittasks"),
            "The ledger of the remote has events that this push would throw away.",
        ),
    ],
)
def test_a_push_by_hand_throws_no_event_away(
    pushing: Path, path: str, words: tuple[str, ...], told: str, with_tool: bool
) -> None:
    said = git_says(
        pushing, "push", "-q", "origin", *words, PATH=path if with_tool else os.environ["PATH"]
    )
    assert said.status == 1
    assert said.err.startswith(f"git tasks: {told}\n")


def test_what_the_remote_has_and_we_do_not_is_not_forced_over(pushing: Path, home: Path) -> None:
    other = home / "other"
    git(home, "clone", "-q", "-b", "gittasks", str(home / "plain.git"), "other")
    git(other, "commit", "-q", "--allow-empty", "-m", "Elsewhere")
    git(other, "push", "-q")
    said = git_says(pushing, "push", "-q", "-f", "origin", "gittasks")
    assert said.err.startswith("git tasks: The ledger of the remote has events that this push")


def test_a_push_by_hand_brings_only_what_verifies(pushing: Path, path: str) -> None:
    ledger = open_ledger(pushing)
    ledger.append(asks(a_request(2)))
    assert git_says(pushing, "push", "-q", "origin", "gittasks", PATH=path) == (0, "")
    bad = the_task_handed_in(ledger)
    ledger.close()
    said = git_says(pushing, "push", "-q", "origin", "gittasks", PATH=path)
    assert said.status == 1
    assert said.err.startswith(f"error: The commit {bad[:12]} (000001) is no valid event: ")
    assert git_says(pushing, "push", "-q", "origin", "gittasks").status == 0


def test_what_the_tool_has_written_is_not_verified_again(pushing: Path, path: str) -> None:
    """The backup says that it was the tool, so the tip here is taken at its word."""
    ledger = open_ledger(pushing)
    bad = the_task_handed_in(ledger)
    ledger.close()
    git(pushing, "update-ref", "refs/gittasks/backup", bad)
    assert git_says(pushing, "push", "-q", "origin", "gittasks", PATH=path) == (0, "")


def test_other_branches_are_pushed_as_ever(pushing: Path, path: str) -> None:
    assert git_says(pushing, "push", "-q", "origin", "master:x", PATH=path) == (0, "")
    assert git_says(pushing, "push", "-q", "origin", ":x", "+master:y", PATH=path) == (0, "")
    assert git_says(pushing, "push", "-q", "origin", "--all", PATH=path) == (0, "")


# ------------------------------------------------------------------------- what a commit is told


@pytest.fixture
def working(guarded: Path) -> Path:
    """The tree of a task, which is a linked worktree, of the guarded clone."""
    tasks_inprocess(guarded, "submit", "1", "--enter", "work")
    return Path(tasks_inprocess(guarded, "start", "1", "--as", "sam").out.strip())


def message(folder: Path) -> str:
    return git(folder, "log", "-1", "--format=%B")


def test_a_commit_on_the_branch_of_a_task_says_so(working: Path, path: str) -> None:
    (working / "new.txt").write_text("new\n", encoding="utf-8")
    git(working, "add", "new.txt")
    git(working, "commit", "-q", "-m", "Add it", "-m", "#1 is why\n---\nlast", env={"PATH": path})
    assert message(working) == "Add it\n\n#1 is why\n---\nlast\n\nTask: 000001"
    git(working, "commit", "-q", "--amend", "--no-edit", env={"PATH": path})
    assert message(working) == "Add it\n\n#1 is why\n---\nlast\n\nTask: 000001"


def test_a_message_from_the_editor_gets_it_before_the_comments(working: Path, path: str) -> None:
    (working / "new.txt").write_text("new\n", encoding="utf-8")
    git(working, "add", "new.txt")
    editor = "sed -i '1s/^/Add it\\n\\nSigned-off-by: Sam <s@example.org>\\n/'"
    git(working, "commit", "-q", "-v", env={"PATH": path, "GIT_EDITOR": editor})
    assert message(working) == "Add it\n\nSigned-off-by: Sam <s@example.org>\nTask: 000001"


def test_a_merge_gets_it_and_keeps_one_that_is_there(working: Path, path: str) -> None:
    git(working, "commit", "-q", "--allow-empty", "-m", "One\n\nTask: 000009")
    git(working, "merge", "-q", "--no-ff", "-m", "Merge", "HEAD", check=False)
    git(working.parents[2] / "guarded", "commit", "-q", "--allow-empty", "-m", "Base")
    git(working, "merge", "-q", "-m", "Merge the base", "master", env={"PATH": path})
    assert message(working) == "Merge the base\n\nTask: 000001"
    git(working, "commit", "-q", "--amend", "-m", "One\n\nTask: 000009", env={"PATH": path})
    assert message(working) == "One\n\nTask: 000009"


@pytest.mark.parametrize("branch", ["other", "task/mine", "task/000001-lost"])
def test_a_commit_on_another_branch_is_left_alone(working: Path, path: str, branch: str) -> None:
    git(working, "checkout", "-q", "-b", branch)
    git(working, "commit", "-q", "--allow-empty", "-m", "Mine", env={"PATH": path})
    assert message(working) == "Mine"


def test_a_commit_on_no_branch_is_left_alone(working: Path, path: str) -> None:
    git(working, "checkout", "-q", "--detach")
    git(working, "commit", "-q", "--allow-empty", "-m", "Mine", env={"PATH": path})
    assert message(working) == "Mine"


def test_a_commit_in_the_main_checkout_gets_it_too(guarded: Path, working: Path, path: str) -> None:
    git(working, "checkout", "-q", "--detach")
    git(guarded, "checkout", "-q", "task/000001")
    (guarded / "below").mkdir()
    git(guarded / "below", "commit", "-q", "--allow-empty", "-m", "Mine", env={"PATH": path})
    assert message(guarded) == "Mine\n\nTask: 000001"


def test_a_commit_is_made_without_the_tool_as_well(working: Path, home: Path) -> None:
    git(working, "commit", "-q", "--allow-empty", "-m", "Mine")
    assert message(working) == "Mine"
    (home / "bin" / "git-tasks").write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    git(working, "commit", "-q", "--allow-empty", "-m", "Broken", env={"PATH": tool(home)})
    assert message(working) == "Broken"


def test_a_lost_ledger_stops_no_commit(guarded: Path, working: Path, path: str) -> None:
    git(guarded, "update-ref", "-d", BRANCH)
    said = git_says(working, "commit", "-q", "--allow-empty", "-m", "Mine", PATH=path)
    assert said == (
        0,
        "error: The branch gittasks of the ledger is missing.\n"
        "hint: Run `git tasks recover` to bring it back.",
    )


def test_a_template_left_as_it_is_still_means_no_commit(working: Path, path: str) -> None:
    (working / ".git-message").write_text("Why?\n# Say why.\n", encoding="utf-8")
    git(working, "config", "commit.template", ".git-message")
    env = {"PATH": path, "GIT_EDITOR": "true"}
    said = git_says(working, "commit", "-q", "--allow-empty", **env)
    assert said == (1, "Aborting commit; you did not edit the message.")


def test_an_empty_message_still_means_no_commit(working: Path, path: str) -> None:
    env = {"PATH": path, "GIT_EDITOR": "true"}
    said = git_says(working, "commit", "-q", "--allow-empty", **env)
    assert said == (1, "Aborting commit due to empty commit message.")


def test_a_word_that_is_no_hook_is_a_usage_error(guarded: Path) -> None:
    assert tasks_inprocess(guarded, "hook", "post-checkout", "a", check=2).err == (
        "error: There is no hook 'post-checkout' with 1 arguments.\n"
        "hint: See the scripts in `hooks/` for how they call it.\n"
    )
