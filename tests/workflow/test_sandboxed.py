"""An agent with real walls around it: it does its work, and everything else fails and is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gittasks.agents import sandbox
from gittasks.agents.environment import agent_environment, own_program
from gittasks.plumbing import refs
from gittasks.workflow import claim, dispatch, settle, trees
from gittasks.workflow.create import New, create
from gittasks.workspaces import quarantine, records, trespass
from tests.workflow.ground import begun, reopened


class Cell:
    """A task that a slot holds, and the sandbox its agent works in; a second task beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repo"
        self.project = begun(self.folder)
        for title in ("First", "Second"):
            create(self.project, New(title, enter="work"))
        hired = claim.Hired("agent-1", "worker", 3600, sandbox="bubblewrap")
        secret = str(self._claimed("000001", hired))
        self._claimed("000002", hired._replace(actor="agent-2"))
        project, places = self.project, self.project.places
        self.claim = records.claim_of(secret)
        self.outbox = os.path.join(project.state_dir, "agents", "000001", "outbox", self.claim)
        made = quarantine.prepare(project.repo, places, "000001", "task/000001", moves=True)
        laid = quarantine.mounts(project.repo, places, made, claim=self.claim, outbox=self.outbox)
        self.own = places.folder("000001")
        self.tree = made.tree
        self.room = sandbox.Room(made.tree, self.own, laid)
        self.log = folder / "log"
        self.env = agent_environment(
            os.environ, task="000001", role="worker", slot="agent-1", secret=secret,
            outbox=self.outbox, run="none", program=own_program(os.environ), has_identity=False,
        )  # fmt: skip
        trial = sandbox.Room(
            "/", quarantine.trial_folder(places), quarantine.trial_mounts(project.repo, places)
        )
        self.step = sandbox.reached("auto", os.environ, trial)
        if self.step.name != "bubblewrap":
            pytest.skip(self.step.why)

    def _claimed(self, task: str, hired: claim.Hired) -> object:
        return claim.claim(self.project, task, hired=hired).extra["claim_secret"]

    @property
    def record(self) -> records.ClaimRecord:
        found = records.with_claim(self.project.state_dir, self.claim)
        assert found is not None
        return found

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a script as the agent, and keeps what it says in the log."""
        argv = sandbox.wrap(self.step, self.room, ("/bin/sh", "-c", script), self.env)
        done = subprocess.run(
            argv, cwd=self.tree, env=self.env, capture_output=True, text=True, check=False
        )
        with self.log.open("a") as log:
            log.write(done.stdout + done.stderr)
        return done

    def state(self) -> object:
        """Returns what nobody in the sandbox may change."""
        other = Path(self.project.places.folder("000002"))
        files = {str(path): path.read_bytes() for path in other.rglob("*") if path.is_file()}
        repo = self.project.repo
        return trespass.remember(repo), refs.list(repo, "refs/"), files


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    return Cell(tmp_path_factory.mktemp("cell"))


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return Cell(tmp_path)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("git update-ref refs/heads/master $(git commit-tree -m x HEAD^{tree})",
         "It tried to move the branch master."),
        ("git update-ref refs/heads/gittasks $(git commit-tree -m x HEAD^{tree})",
         "It tried to move the branch gittasks."),
        ("git update-ref -d refs/heads/gittasks", "It tried to move the branch gittasks."),
        ("git update-ref refs/heads/task/000002 $(git commit-tree -m x HEAD^{tree})",
         "It tried to move the branch task/000002."),
        ("git update-ref refs/heads/new/one HEAD", "It tried to move the branch new/one."),
        ("git tag v1", "It tried to move refs/tags/v1."),
        ("git config core.fsmonitor evil", "It tried to change the configuration of the repository."),
        ('echo evil >"$(git rev-parse --git-common-dir)/config"',
         "It tried to change the configuration of the repository."),
        ('mkdir -p "$(git rev-parse --git-common-dir)/hooks" &&'
         ' echo evil >"$(git rev-parse --git-common-dir)/hooks/pre-commit"', "It tried to change the hook"),
        ("echo evil >../../000002/ASSIGNMENT.md",
         "It tried to write 000002/ASSIGNMENT.md among the folders of other tasks."),
        ("touch ../../000002/tree/new", "It tried to write 000002/tree/new among the folders of other tasks."),
        ('touch "$(git rev-parse --git-common-dir)/gittasks/claims/new"',
         "It tried to write gittasks/claims/new in the repository."),
        ('touch "$(git rev-parse --git-common-dir)/gittasks/runs/new"',
         "It tried to write gittasks/runs/new in the repository."),
        ('touch "$(git rev-parse --git-common-dir)/worktrees/new"', "It tried to write worktrees/new in the repository."),
        ('echo x >"$(git rev-parse --git-dir)/commondir"', "It tried to write worktrees/"),
        ("git gc --prune=now", "It tried to write gc.pid in the repository."),
    ],
    ids=lambda value: value[:60],
)  # fmt: skip
def test_what_is_none_of_its_business_fails_and_is_told(
    shared: Cell, script: str, sentence: str
) -> None:
    before = shared.state()
    offset = trespass.log_size(str(shared.log))
    assert shared.run(script).returncode != 0
    assert shared.state() == before
    told = trespass.attempts(
        str(shared.log), offset, shared.project.repo.common_dir, shared.project.places.root,
        shared.own,
    )  # fmt: skip
    assert any(one.startswith(sentence) for one in told), told


@pytest.mark.parametrize("path", ["../tree", ".git", '"$(git rev-parse --git-dir)"', "../agent"])
def test_what_holds_the_walls_cannot_be_renamed_away(shared: Cell, path: str) -> None:
    rename = "import os, sys; os.rename(sys.argv[1], '../gone')"
    assert shared.run(f'{sys.executable} -c "{rename}" {path}').returncode != 0
    assert not os.path.lexists(os.path.join(shared.own, "gone"))


def test_it_sees_its_own_claim_and_no_other(shared: Cell) -> None:
    claims = os.path.join(shared.project.state_dir, "claims")
    assert shared.run(f"ls {claims}").stdout.split() == [f"{shared.claim}.json"]
    assert shared.run(f"ls {shared.project.state_dir}/agents").stdout.split() == ["000001"]


@pytest.mark.parametrize(
    "verb", ["show", "prime", "list", "diff", "status", "inbox", "whoami", "log", "check", "fsck"]
)
def test_a_verb_that_only_looks_works_inside(shared: Cell, verb: str) -> None:
    done = shared.run(f"git tasks {verb}")
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr


def test_work_is_committed_submitted_and_recorded(cell: Cell) -> None:
    early = cell.run("git tasks submit -m Done")
    assert early.returncode == 5
    done = cell.run("echo b >b && git add b && git commit -qm Work && git tasks submit -m Done")
    assert done.returncode == 0, done.stderr
    project, places = cell.project, cell.project.places
    assert quarantine.harvest(project.repo, places, "000001").has_moved
    (entry,) = settle.found_in(cell.outbox).entries
    outcome = settle.record_entry(project, entry, cell.record)
    assert quarantine.close(project.repo, places, "000001") == ()
    assert outcome.target == "CHECK"
    assert outcome.task.submitted_tip == refs.read(project.repo, "refs/heads/task/000001")
    assert refs.head(project.repo, at=cell.tree).branch == "refs/heads/task/000001"


def test_an_assignment_that_the_manager_changes_reaches_the_agent_through_the_runner(
    cell: Cell,
) -> None:
    """Inside nothing can be recorded: the entry that was refused lets the runner meet the same."""
    from gittasks.workflow.edit import edit

    cell.run("echo b >b && git add b && git commit -qm Work")
    edit(reopened(cell.project), "000001", body=b"Do it otherwise.\n", force=True)
    refused = cell.run("git tasks submit -m Done")
    assert refused.returncode == 5
    cell.project.ledger.refresh()
    quarantine.harvest(cell.project.repo, cell.project.places, "000001")
    (entry,) = settle.found_in(cell.outbox).entries
    with pytest.raises(Exception, match="changed"):
        settle.require_recordable(cell.project, entry, cell.record)
    assert b"otherwise" in Path(cell.own, "ASSIGNMENT.md").read_bytes()
    again = cell.run("git tasks submit -m Done")
    assert again.returncode == 0, again.stderr


def test_recovery_brings_in_what_a_dead_runner_has_left(cell: Cell) -> None:
    made = cell.run("echo b >b && git add b && git commit -qm Work && git rev-parse HEAD").stdout
    assert trees.repair(cell.project) == (
        "Brought in what an agent has left in the worktree of 000001.",
    )
    assert dispatch.branch_tip(cell.project, "task/000001") == made.strip()
    assert trees.repair(cell.project) == ()


def test_a_pipe_in_place_of_the_assignment_holds_nobody_up(cell: Cell) -> None:
    cell.run("rm ../ASSIGNMENT.md; mkfifo ../ASSIGNMENT.md; ln -s /etc/passwd ../x")
    assert dispatch.read_file(cell.project.places.assignment("000001")) is None
    assert trees.take_away(cell.project, "000001").notes == ()
