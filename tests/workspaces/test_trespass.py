"""What an agent moved that was none of its business is told; what the tool and the user did is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.plumbing import refs
from gittasks.workspaces import trespass
from tests.workspaces.conftest import BASE, Clone

LEDGER = "refs/heads/gittasks"
OWN = "refs/heads/task/000001"
OTHER = "refs/heads/task/000002"


class Watched:
    """A repository in which somebody does something between two looks."""

    def __init__(self, clone: Clone) -> None:
        self.clone = clone
        self.first = clone.git("rev-parse", "HEAD")
        self.second = clone.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Second")
        for name in (LEDGER, OWN, OTHER):
            refs.compare_and_swap(clone.repo, name, self.first, None, "gittasks: begin")
        clone.git("worktree", "add", "-q", str(clone.tree("000001")), "task/000001")
        clone.git("tag", "v1")
        self.before = trespass.remember(clone.repo)

    def ours(self, name: str, new: str, old: str) -> None:
        refs.compare_and_swap(self.clone.repo, name, new, old, "gittasks: 000002 submit")

    def theirs(self, *args: str) -> None:
        """Runs git in the agent's tree."""
        self.clone.git(*args, at=self.clone.tree("000001"))

    def told(self) -> list[str]:
        return trespass.compare(
            self.clone.repo, self.before, trespass.remember(self.clone.repo),
            ledger=LEDGER, base=BASE, prefix="task/", free={OWN},
        )  # fmt: skip


@pytest.fixture
def watched(clone: Clone) -> Watched:
    return Watched(clone)


def test_the_tool_the_user_and_the_agent_on_its_own_branch_are_not_told(watched: Watched) -> None:
    watched.ours(LEDGER, watched.second, watched.first)
    watched.theirs("commit", "-q", "--allow-empty", "-m", "Work")
    git = watched.clone.git
    git("commit", "-q", "--allow-empty", "-m", "Mine")
    git("switch", "-q", "-c", "feature")
    git("commit", "-q", "--allow-empty", "-m", "Mine")
    git("update-ref", "refs/remotes/origin/master", watched.second)
    assert watched.told() == []


def _first_and_second(watched: Watched) -> tuple[str, str]:
    return watched.first[:12], watched.second[:12]


@pytest.mark.parametrize(
    ("do", "sentence"),
    [
        (("update-ref", BASE, "SECOND"), "The base master was moved from FIRST to SECOND."),
        (("update-ref", LEDGER, "SECOND"), "The ledger gittasks was moved to SECOND, and not by git tasks."),
        (("update-ref", "-d", LEDGER), "The ledger gittasks is gone; it was at FIRST."),
        (("update-ref", OTHER, "SECOND"), "The work branch task/000002 was moved from FIRST to SECOND."),
        (("branch", "-D", "task/000002"), "The work branch task/000002 is gone; it was at FIRST."),
        (("branch", "mine", "SECOND"), "The branch mine was made at SECOND."),
        (("tag", "-f", "v1", "SECOND"), "The ref tags/v1 was moved from FIRST to SECOND."),
        (("config", "core.fsmonitor", "evil"), "The file config of the repository was changed."),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_what_an_agent_moves_beside_its_branch_is_told(
    watched: Watched, do: tuple[str, ...], sentence: str
) -> None:
    first, second = _first_and_second(watched)
    watched.theirs(*(watched.second if word == "SECOND" else word for word in do))
    assert watched.told() == [sentence.replace("FIRST", first).replace("SECOND", second)]


def test_a_base_that_is_named_from_the_users_own_checkout_is_told_too(watched: Watched) -> None:
    watched.clone.git("update-ref", BASE, watched.second)
    assert len(watched.told()) == 1


def test_a_ledger_that_goes_back_is_told_whoever_did_it(watched: Watched) -> None:
    watched.ours(LEDGER, watched.second, watched.first)
    watched.before = trespass.remember(watched.clone.repo)
    watched.ours(LEDGER, watched.first, watched.second)
    first, second = _first_and_second(watched)
    assert watched.told() == [f"The ledger gittasks did not go forward: from {second} to {first}."]


def test_hooks_and_head_of_the_checkout_are_watched(watched: Watched) -> None:
    hooks = watched.clone.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-commit").write_text("evil")
    (watched.clone.folder / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
    assert watched.told() == [
        "The file hooks/pre-commit of the repository is new.",
        "HEAD of the checkout is at ref: refs/heads/other now, not at ref: refs/heads/master.",
    ]


COMMON, ROOT = "/r/.git", "/r.tasks"


def _attempts(log: Path, text: str, offset: int = 0) -> list[str]:
    log.write_text(text)
    return trespass.attempts(str(log), offset, COMMON, ROOT, f"{ROOT}/000001")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cannot lock ref 'x': Unable to create '/r/.git/refs/heads/master.lock': Read-only file system",
         "It tried to move the branch master."),
        ("Unable to create '/r/.git/packed-refs.lock': Read-only file system", "It tried to move packed-refs."),
        ("Unable to create '/r/.git/refs/tags/v1.lock': Read-only file system", "It tried to move refs/tags/v1."),
        ("error: could not lock config file /r/.git/config: Read-only file system",
         "It tried to change the configuration of the repository."),
        ("/bin/sh: 1: cannot create /r/.git/hooks/pre-commit: Read-only file system",
         "It tried to change the hook pre-commit."),
        ("touch: cannot touch '../../000002/tree/z': Read-only file system",
         "It tried to write 000002/tree/z among the folders of other tasks."),
        ("OSError: [Errno 30] Read-only file system: '/r.tasks/000002/ASSIGNMENT.md'",
         "It tried to write 000002/ASSIGNMENT.md among the folders of other tasks."),
        (r'{"text":"a /r/.git/config\nrm: cannot remove \'/r/.git/index\': Read-only file system\nb"}',
         "It tried to write index in the repository."),
    ],
    ids=lambda value: value[-30:],
)  # fmt: skip
def test_a_refused_attempt_is_found_in_the_output(tmp_path: Path, line: str, sentence: str) -> None:
    assert _attempts(tmp_path / "log", f"working\n{line}\n{line}\ndone\n") == [sentence]


def test_refusals_elsewhere_and_before_the_offset_are_not_attempts(tmp_path: Path) -> None:
    old = "touch: cannot touch '/r/.git/config': Read-only file system\n"
    new = "touch: cannot touch '/etc/x': Read-only file system\nrm: '/r.tasks/000001/tree/.git': Device or resource busy\n"
    assert _attempts(tmp_path / "log", old + new, len(old)) == []


def test_a_log_that_was_renamed_meanwhile_is_read_to_its_end(tmp_path: Path) -> None:
    line = "touch: cannot touch '/r/.git/config': Read-only file system\n"
    (tmp_path / "log.1").write_text("x" * 100 + line)
    assert len(_attempts(tmp_path / "log", "new\n", 100)) == 1
