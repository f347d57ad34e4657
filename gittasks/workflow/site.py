"""What those who work for the project may ask of it, without knowing how it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gittasks.domain.config import Project as Settings
    from gittasks.domain.requests import Facts, Speaker
    from gittasks.ledger.ledger import Ledger
    from gittasks.plumbing.remote import Update
    from gittasks.plumbing.repository import Config, Repository
    from gittasks.workspaces.places import Places

LOCK_TIMEOUT = 30.0
"""How many seconds to wait for a lock where gittasks.lockTimeout says nothing."""


class Publishing(NamedTuple):
    """How events become public: refs to fetch before, refs of the remote that move with them."""

    names: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    updates: Callable[[], Sequence[Update]] = tuple
    optional: tuple[str, ...] = ()
    fresh: bool = True
    """Whether the remote is asked first; otherwise only where what is known refuses it."""


class Site(Protocol):
    """As much of the project as landings and the remote need."""

    repo: Repository
    state_dir: str
    environ: Mapping[str, str]
    told: tuple[str, ...]

    @property
    def config(self) -> Config:
        """Returns the git configuration of this clone."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Returns the ledger."""
        ...

    @property
    def settings(self) -> Settings:
        """Returns what all clones share."""
        ...

    @property
    def base(self) -> str:
        """Returns the full name of the branch that tasks land on."""
        ...

    @property
    def remote(self) -> str | None:
        """Returns the remote that this clone shares its ledger through."""
        ...

    @property
    def is_offline(self) -> bool:
        """Tells whether this command does without the remote."""
        ...

    @property
    def branch_prefix(self) -> str:
        """Returns what the names of work branches begin with."""
        ...

    @property
    def places(self) -> Places:
        """Returns where the things of a task stand on this host."""
        ...

    def clock(self) -> int:
        """Returns now in whole seconds since 1970."""
        ...

    def facts(self, speaker: Speaker) -> Facts:
        """Returns what every decision needs to know beside the request."""
        ...
