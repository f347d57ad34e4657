"""What a task changes, against the point where its branch left the base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.workflow.project import Project


class Change(NamedTuple):
    """What a task changes: from where, to where, which files, and the diff."""

    base: str
    tip: str
    files: tuple[tuple[str, str], ...]
    """Status letter and path of each file."""
    stat: str
    patch: str

    def as_object(self) -> dict[str, Any]:
        """Returns the change as JSON has it."""
        files = [{"status": status, "path": path} for status, path in self.files]
        return {"base": self.base, "tip": self.tip, "files": files, "patch": self.patch}


def change(
    project: Project, task: Task, *, patch: bool = True, tests: bool = False
) -> Change | None:
    """Returns what a task changes against the merge base, None when it has no commits."""
    ends = _ends(project, task)
    if ends is None:
        return None
    base, tip = ends
    repo = project.repo
    listed = repo.text("diff", "--name-status", "--no-renames", "-z", base, tip, "--")
    words = listed.split("\0")
    files = [pair for pair in zip(words[::2], words[1::2], strict=False) if pair[1]]
    if tests:
        files = [pair for pair in files if is_test_file(pair[1])]
    paths = [f":(top,literal){path}" for _, path in files] if tests else []
    stat = text = ""
    if files and patch:
        text = repo.text("diff", "--no-ext-diff", "--no-textconv", base, tip, "--", *paths)
    elif files:
        stat = repo.text("diff", "--stat=80", "--no-ext-diff", base, tip, "--", *paths)
    return Change(base, tip, tuple(files), stat, text)


def _ends(project: Project, task: Task) -> tuple[str, str] | None:
    """Returns the two commits between which the task's change lies."""
    from gittasks.plumbing import merging
    from gittasks.workflow.dispatch import base_name, branch_tip
    from gittasks.workspaces import branch as branches

    repo = project.repo
    tip = None
    if project.options.at is not None:
        # The branch has gone on since then.
        tip = task.submitted_tip
    elif task.branch:
        from gittasks.workflow import work_branches

        work_branches.have_branch(project, task)
        tip = branch_tip(project, task.branch)
        if task.state in branches.JUDGED and task.submitted_tip is not None:
            if branches.lacks_submitted(project.ledger.reader, task):
                raise branches.lacking(task, project.settings.base)
            # Whoever may push to the branch can move it; what is looked at is what was submitted.
            tip = task.submitted_tip
    if tip is not None:
        trunk = _commit(project, base_name(project)) or task.base
        base = merging.merge_base(repo, trunk, tip) if trunk else None
        if base is not None and base != tip:
            return base, tip
    # Once landed the branch may be gone; the merge itself says what came in.
    landed = task.landed
    if landed is None:
        return None
    parent = repo.text("rev-parse", "--verify", "--quiet", f"{landed}^1^{{commit}}", check=False)
    return (parent, landed) if parent else None


def _commit(project: Project, name: str) -> str | None:
    found = project.ledger.reader.get(name)
    return found.oid if found else None


def is_test_file(path: str) -> bool:
    """Tells whether a path is that of a test, by the habits of most languages."""
    *folders, name = path.lower().split("/")
    stem = name.partition(".")[0]
    return (
        any(folder in ("test", "tests", "spec", "specs", "__tests__") for folder in folders)
        or stem.startswith(("test_", "test-"))
        or stem.endswith(("_test", "-test", "_spec", "-spec", "tests"))
        or ".test." in name
        or ".spec." in name
    )
