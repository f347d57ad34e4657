"""Which git can do what, and the oldest git that is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from gittasks.plumbing import repository

if TYPE_CHECKING:
    from gittasks.plumbing.repository import Repository

Feature = Literal[
    "required", "worktree-list-z", "merge-tree", "no-lazy-fetch", "reftable", "config-hooks"
]


class Requirement(NamedTuple):
    """The first git version that has something, and what we need it for."""

    version: tuple[int, int]
    reason: str


FEATURES: dict[Feature, Requirement] = {
    "required": Requirement((2, 34), "`worktree add --reason`, `rev-parse --path-format`"),
    "worktree-list-z": Requirement((2, 36), "paths of worktrees that hold line ends"),
    "merge-tree": Requirement((2, 38), "merging without a checkout"),
    "no-lazy-fetch": Requirement((2, 44), "asking a partial clone what it has, without a fetch"),
    "reftable": Requirement((2, 45), "repositories that keep their refs in reftables"),
    "config-hooks": Requirement((2, 54), "hooks in the configuration, beside core.hooksPath"),
}

_known: dict[str, tuple[int, ...]] = {}


def git_version(repo: Repository) -> tuple[int, ...]:
    """Returns the version of git as numbers, asked once for each git."""
    program = repository.GIT
    if program not in _known:
        _known[program] = parse_version(repo.text("version"))
    return _known[program]


def parse_version(text: str) -> tuple[int, ...]:
    """Returns the numbers of `git version 2.39.5 (Vendor 1)`; what follows them is ignored."""
    words = text.split()
    numbers: list[int] = []
    for part in (words[2] if len(words) > 2 else "").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def supports(repo: Repository, feature: Feature) -> bool:
    """Returns whether the git that runs here has the feature."""
    return git_version(repo) >= FEATURES[feature].version
