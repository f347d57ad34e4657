"""Tasks on their way to a landing, driven through the verbs by their roles."""

from __future__ import annotations

from pathlib import Path

from gittasks.domain.requests import Create, Submit
from gittasks.workflow import claim, submit, trust
from gittasks.workflow.project import Options, Outcome, Project
from tests.support.git import git
from tests.workflow.ground import begun, opened


class Scene:
    """A repository with a ledger, in which every step is a command of its own."""

    def __init__(self, folder: Path) -> None:
        """Makes the repository and its ledger."""
        self.folder = folder
        begun(folder)

    @property
    def manager(self) -> Project:
        """Returns the project as the person at the machine sees it now."""
        return opened(self.folder)

    def agent(self, name: str, role: str) -> Project:
        """Returns the project as an agent sees it now."""
        return opened(self.folder, Options(str(self.folder), actor=name, role=role))

    def git(self, *args: str, at: Path | None = None, check: bool = True) -> str:
        """Runs git in the user's checkout, or elsewhere."""
        return git(at or self.folder, *args, check=check)

    def tree(self, task: str) -> Path:
        """Returns where the tree of a task stands."""
        return Path(self.manager.places.tree(task))

    def new(self, task: str, *checks: str, enter: str = "WORK", **more: object) -> None:
        """Writes a task down, whose checks are approved here, and dispatches it."""
        project = self.manager
        create = Create(f"Task {int(task)}", f"{int(task):032x}", checks=checks, **more)  # type: ignore[arg-type]
        dispatch = Submit(task, enter=enter)  # type: ignore[arg-type]
        project.apply(lambda _graph: (create, dispatch), project.speaker("submit"))
        trust.approve_own(project, checks, "Ada")

    def commit(self, at: Path, files: dict[str, str], message: str = "Work") -> str:
        """Commits files and returns the commit."""
        for name, text in files.items():
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).write_text(text)
        git(at, "add", "-A")
        git(at, "commit", "-q", "-m", message)
        return git(at, "rev-parse", "HEAD")

    def started(self, task: str) -> Path:
        """Claims a task as its worker and returns the tree."""
        claim.start(self.agent("pi-1", "worker"), task)
        return self.tree(task)

    def submitted(self, task: str, *, check: bool = True) -> Outcome:
        """Submits the work."""
        worker = self.agent("pi-1", "worker")
        return submit.submit(worker, task, text=b"Done.", check=check)

    def worked(self, task: str, files: dict[str, str], *, check: bool = True) -> str:
        """Claims, commits and submits the work; returns the tip."""
        tip = self.commit(self.started(task), files)
        self.submitted(task, check=check)
        return tip

    def reviewed(self, task: str, files: dict[str, str]) -> str:
        """Brings a task from WORK to MANAGER_REVIEW and returns its tip."""
        tip = self.worked(task, files)
        claim.claim(self.agent("pi-2", "reviewer"), task)
        submit.submit(self.agent("pi-2", "reviewer"), task)
        return tip

    def land(self, task: str) -> Outcome:
        """Lands a task as the manager does."""
        return submit.submit(self.manager, task)

    def state(self, task: str) -> str:
        """Returns the state of a task now."""
        return self.manager.task(task).state

    def master(self) -> str:
        """Returns the commit of the base."""
        return self.git("rev-parse", "master")

    def traces(self) -> list[str]:
        """Returns what an open landing would leave: records, refs, spare trees."""
        project = self.manager
        folder = Path(project.state_dir, "landing")
        files = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        refs = self.git("for-each-ref", "--format=%(refname)", "refs/gittasks/landing")
        spare = [path.name for path in Path(project.worktree_root).glob("landing-*")]
        return [*files, *refs.split(), *spare]
