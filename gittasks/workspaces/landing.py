"""Prepares the landing of a task's branch on the base, and brings everything along afterwards.

Nothing here moves the base: `merged` makes the commit it is to move to, `require_free` finds what
stands against that in a checkout of the base, and `bring_along` updates the checkout when the base
has moved. The order of these steps, and what a crash between them means, is the workflow's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import CheckFailed, Refused
from gittasks.plumbing import merging, objects, refs, worktrees
from gittasks.plumbing.errors import GitError
from gittasks.workspaces.branch import HEADS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gittasks.domain.task import Task
    from gittasks.plumbing.objects import Reader
    from gittasks.plumbing.repository import Repository

LANDING = "refs/gittasks/landing/"
"""Holds the commit of an open landing, by the id of its task."""
LANDED = "refs/gittasks/landed/"
"""Holds the branch of a task whose commits are not in the base as they were."""

_AT_ONCE = 200
_REBASE = (
    *("-c", "rebase.autoStash=false", "-c", "rebase.autoSquash=false"),
    *("-c", "rebase.updateRefs=false", "-c", "rerere.enabled=false"),
)


class Identity(NamedTuple):
    """Who merges, and when."""

    name: str
    mail: str
    time: int


# --- what is to land --------------------------------------------------------------------------


def require_reviewed(reader: Reader, task: Task) -> str:
    """Returns the tip of a task's branch; raises Refused unless it is the reviewed commit."""
    found = reader.get(HEADS + task.branch) if task.branch else None
    if found is None:
        raise Refused(
            f"The branch {task.branch or f'of {task.id}'} does not exist, so nothing can land.",
            f"Bring it back: git branch {task.branch} {task.checked_tip}."
            if task.branch and task.checked_tip
            else f"Send it back with `git tasks feedback {task.id}`.",
            task.id,
        )
    tip = found.oid
    if tip != task.checked_tip or tip != task.submitted_tip:
        raise Refused(
            f"The branch {task.branch} is at {tip[:12]}, "
            f"but {(task.checked_tip or 'nothing')[:12]} was checked and reviewed.",
            f"Send it back with `git tasks feedback {task.id}`, "
            f"or put the branch back to {task.checked_tip}.",
            task.id,
        )
    if tip == task.base and tip == task.dispatched:
        raise Refused(
            f"The branch {task.branch} has no commit of its own, so nothing can land.",
            f"Send it back with `git tasks feedback {task.id}`.",
            task.id,
        )
    return tip


def require_base(reader: Reader, ref: str) -> str:
    """Returns the commit of the base; raises Refused where there is none."""
    found = reader.get(ref)
    if found is None or found.kind != "commit":
        name = ref.removeprefix(HEADS)
        raise Refused(f"The base branch {name} does not exist.", f"Make it: git branch {name}.")
    return found.oid


def landed_by_hand(repo: Repository, reader: Reader, tip: str, base: str) -> str | None:
    """Returns the first commit of the base that contains the tip, None if none does."""
    if tip == base:
        return tip
    if not merging.is_ancestor(repo, tip, base):
        return None
    line = repo.text("rev-list", "--first-parent", "--reverse", base, f"^{tip}", "--").split()
    if reader.commit(line[0]).parents[:1] == (tip,):
        return tip
    # Along the first parents, once the tip is in it stays in.
    low, high = 0, len(line) - 1
    while low < high:
        middle = (low + high) // 2
        if merging.is_ancestor(repo, tip, line[middle]):
            high = middle
        else:
            low = middle + 1
    return line[low]


# --- the commit -------------------------------------------------------------------------------


def merged(
    repo: Repository,
    reader: Reader,
    task: Task,
    base: str,
    tip: str,
    mode: str,
    who: Identity,
    spare: str | None = None,
) -> str:
    """Returns the commit that brings the tip onto the base; raises CheckFailed on a conflict.

    A rebase needs a `spare` worktree to work in, which it leaves detached at the result.
    """
    if mode == "rebase":
        assert spare is not None
        return _rebased(repo, task, base, tip, who, spare)
    result = merging.merge_tree(repo, base, tip)
    if result.tree is None:
        raise conflict(task, result.conflicts)
    committer = objects.Signature(_name(who), who.mail, who.time, _zone(who.time))
    message = f"{task.id}: {_one_line(task.title)}\n\nTask: {task.id}\n"
    squashed = mode == "squash"
    data = objects.commit_bytes(
        result.tree,
        (base,) if squashed else (base, tip),
        _author_of(reader, tip) if squashed else committer,
        committer,
        message.encode("utf-8", "replace"),
    )
    commit = objects.draft(repo, "commit", data)
    objects.write(repo, [commit])
    return commit.oid


def conflict(task: Task, paths: Sequence[str]) -> CheckFailed:
    """Returns the refusal that names the files two sides have changed."""
    shown = ", ".join(paths[:20]) + (f" and {len(paths) - 20} more" if len(paths) > 20 else "")
    return CheckFailed(
        f"The branch {task.branch} conflicts with the base in {shown}.",
        f"Send it back with `git tasks feedback {task.id} --from-landing`, "
        "to be merged with the base there.",
        task.id,
    )


def _rebased(repo: Repository, task: Task, base: str, tip: str, who: Identity, spare: str) -> str:
    env = {"GIT_COMMITTER_NAME": _name(who), "GIT_COMMITTER_EMAIL": who.mail}
    repo.git("checkout", "-q", "--detach", tip, at=spare)
    command = (*_REBASE, "rebase", "-q", "--no-verify", "--no-fork-point", base)
    done = repo.git(*command, at=spare, env=env, check=False)
    if done.status:
        unmerged = repo.git("diff", "--name-only", "-z", "--diff-filter=U", at=spare)
        paths = tuple(name for name in os.fsdecode(unmerged.stdout).split("\0") if name)
        repo.git("rebase", "--abort", at=spare, check=False)
        if not paths:
            raise GitError(("rebase",), done.status, os.fsdecode(done.stderr))
        raise conflict(task, paths)
    return repo.text("rev-parse", "HEAD", at=spare)


def _author_of(reader: Reader, tip: str) -> objects.Signature:
    commit = reader.commit(tip)
    name, _, mail = commit.author.rpartition(" <")
    return objects.Signature(name, mail.rstrip(">"), commit.author_time, commit.author_zone)


def _name(who: Identity) -> str:
    return who.name or "unknown"


def _one_line(title: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in title).split())


def _zone(now: int) -> str:
    import time

    offset = time.localtime(now).tm_gmtoff // 60
    return f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}{abs(offset) % 60:02d}"


# --- the checkouts of the base ----------------------------------------------------------------


def require_free(repo: Repository, task: Task, ref: str, old: str, new: str) -> None:
    """Raises Refused where a checkout of the base could not follow it; changes nothing."""
    for tree in worktrees.list(repo):
        if tree.bare or tree.prunable is not None or not os.path.isdir(tree.path):
            continue
        git_dir = worktrees.git_dir_of(repo, tree.path)
        began = worktrees.in_progress(git_dir)
        if tree.branch != ref and not (began and ref in _branches_of(git_dir)):
            continue
        if began:
            article = "an" if began == "am" else "a"
            raise Refused(
                f"In {tree.path}, {article} {began} is in progress on the base "
                f"{ref.removeprefix(HEADS)}.",
                f"Finish or abort it: git -C {tree.path} status.",
                task.id,
            )
        _require_no_file_in_the_way(repo, task, tree.path, old, new)
        try:
            merging.read_tree_update(repo, tree.path, old, new, dry_run=True)
        except GitError as error:
            raise Refused(
                f"The checkout {tree.path} cannot follow the base: {_words(error)}",
                "Commit, stash or move away what is named, then land again.",
                task.id,
            ) from None


def bring_along(
    repo: Repository, ref: str, old: str, new: str, *, unless_done: bool = False
) -> tuple[str, ...]:
    """Updates every checkout of a base that has moved; returns what is left to do by hand.

    With `unless_done` those that have followed already, as after a crash, are left alone.
    """
    notes = []
    for tree in worktrees.list(repo):
        if tree.branch != ref or tree.bare or not os.path.isdir(tree.path):
            continue
        if unless_done and not _is_behind(repo, tree.path, old, new):
            continue
        try:
            if unless_done:
                merging.resume_read_tree(repo, tree.path, old, new)
            else:
                merging.read_tree_update(repo, tree.path, old, new, dry_run=False)
        except GitError as error:
            notes.append(
                f"The base has moved, but the checkout {tree.path} could not follow: "
                f"{_words(error)} Clear the way and run `git tasks recover`, "
                f"or: git -C {tree.path} read-tree -m -u {old} {new}"
            )
    return tuple(notes)


def _is_behind(repo: Repository, checkout: str, old: str, new: str) -> bool:
    """Tells whether the index of a checkout still has all that changed as it was before."""
    changed = {one.path for one in merging.changed_paths(repo, old, new)}
    done = repo.git("diff-index", "--cached", "--name-only", "-z", old, "--", at=checkout)
    return not changed & set(os.fsdecode(done.stdout).split("\0"))


def _words(error: GitError) -> str:
    """Returns all that git said: the paths stand on lines of their own."""
    lines = [line.strip().removeprefix("error: ") for line in error.stderr.splitlines()]
    said = " ".join(line for line in lines if line)
    return (said or str(error)).rstrip(".") + "."


def _branches_of(git_dir: str) -> Iterator[str]:
    """Yields the branches that a rebase or a bisection will come back to."""
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        try:
            with open(os.path.join(git_dir, name), "rb") as file:
                text = os.fsdecode(file.read()).strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield text if text.startswith("refs/") else HEADS + text


def _require_no_file_in_the_way(
    repo: Repository, task: Task, checkout: str, old: str, new: str
) -> None:
    """Raises Refused for an added path that is there untracked: git would replace ignored ones."""
    added = [one.path for one in merging.changed_paths(repo, old, new) if one.status == "A"]
    present = [path for path in added if os.path.lexists(os.path.join(checkout, path))]
    blocking = sorted({above for path in added for above in _files_above(checkout, path)})
    in_the_way = _untracked(repo, checkout, present + blocking)
    if in_the_way:
        shown = ", ".join(in_the_way[:20])
        raise Refused(
            f"The landing adds files that stand untracked in {checkout}: {shown}.",
            "Move them away or remove them, then land again.",
            task.id,
        )


def _files_above(checkout: str, path: str) -> Iterator[str]:
    """Yields what stands, as a file or link, where a path needs a folder."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        above = "/".join(parts[:count])
        place = os.path.join(checkout, above)
        if os.path.islink(place) or os.path.isfile(place):
            yield above
            return
        if not os.path.isdir(place):
            return


def _untracked(repo: Repository, checkout: str, paths: Sequence[str]) -> list[str]:
    found: list[str] = []
    for at in range(0, len(paths), _AT_ONCE):
        done = repo.git(
            *("ls-files", "-z", "--others", "--", *paths[at : at + _AT_ONCE]),
            at=checkout,
            env={"GIT_LITERAL_PATHSPECS": "1"},
        )
        found += [name for name in os.fsdecode(done.stdout).split("\0") if name]
    return found


# --- refs -------------------------------------------------------------------------------------


def hold_commit(repo: Repository, task: str, commit: str | None) -> None:
    """Makes the commit of an open landing safe from gc, or lets it go."""
    name = LANDING + task
    now = refs.read(repo, name)
    if now != commit:
        refs.compare_and_swap(repo, name, commit, now, "gittasks: landing")
