"""The user's own note of where a branch of a remote stands, such as `refs/remotes/origin/main`.

git moves it with every push of the user's. Our pushes go by object id and touch nothing; what is
known to be there is noted here afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.plumbing import merging, refs
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

__all__ = ["note", "ref_of"]

_REMOTES = "refs/remotes/"


def ref_of(repo: Repository, remote: str, name: str) -> str | None:
    """Returns the ref that a fetch of the user's copies a remote's ref to; None if there is none."""
    specs = repo.config.get_all(f"remote.{remote}.fetch")
    if any(_mapped(spec[1:], name, name) for spec in specs if spec.startswith("^")):
        return None
    for spec in specs:
        source, _, target = spec.removeprefix("+").partition(":")
        found = _mapped(source, target, name)
        # In a mirror that is the branch itself, which is nobody's note.
        if found is not None and found.startswith(_REMOTES):
            return found
    return None


def note(repo: Repository, remote: str, name: str, tip: str) -> bool:
    """Moves that ref to where the remote's is now, if it is there and behind; tells whether it did.

    Nothing depends on it, so a failure is none.
    """
    try:
        ref = ref_of(repo, remote, name)
        old = None if ref is None else refs.read(repo, ref)
        if ref is None or old is None or old == tip or not merging.is_ancestor(repo, old, tip):
            return False
        refs.compare_and_swap(repo, ref, tip, old, "gittasks: pushed")
    except GitError:
        return False
    return True


def _mapped(source: str, target: str, name: str) -> str | None:
    before, star, after = source.partition("*")
    if not star:
        return target if name == source else None
    long_enough = len(name) >= len(before) + len(after)
    if not (long_enough and name.startswith(before) and name.endswith(after)):
        return None
    return target.replace("*", name[len(before) : len(name) - len(after)], 1)
