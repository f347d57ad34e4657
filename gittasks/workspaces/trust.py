"""Which commands may run in this clone: those whose exact text a person here has approved.

Kept outside everything that travels with the repository, by the digest of the text.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gittasks.domain.errors import Refused
from gittasks.workspaces import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gittasks.plumbing.locks import FileLock


class Approval(NamedTuple):
    """A command, who approved it, and when."""

    command: str
    by: str
    at: int


class Trust:
    """The approvals of one clone; where `never` is set there are none."""

    __slots__ = ("_lock_timeout", "_path", "never")

    def __init__(self, state_dir: str, mode: str | None = None, lock_timeout: float = 30) -> None:
        self._path = os.path.join(state_dir, "trust.json")
        self._lock_timeout = lock_timeout
        self.never = (mode or "ask").lower() == "never"

    def untrusted(self, commands: Iterable[str]) -> tuple[str, ...]:
        """Returns the commands nobody here has approved, in order."""
        wanted = tuple(dict.fromkeys(commands))
        if not wanted:
            return ()
        known = {} if self.never else self._read()
        return tuple(command for command in wanted if digest_of(command) not in known)

    def approve(self, commands: Iterable[str], by: str, at: int) -> tuple[str, ...]:
        """Approves commands and returns those that were not approved before."""
        new = self.untrusted(commands)
        if not new:
            return ()
        if self.never:
            raise Refused(
                "This clone approves no commands: gittasks.trust is never.",
                "Set gittasks.trust to ask.",
            )
        with self._locked():
            known = self._read()
            for command in new:
                known[digest_of(command)] = Approval(command, by, at)
            self._write(known)
        return new

    def revoke(self, commands: Iterable[str] | None = None) -> tuple[str, ...]:
        """Takes approvals back, all of them without a list, and returns what was approved."""
        with self._locked():
            known = self._read()
            chosen = list(known) if commands is None else [digest_of(one) for one in commands]
            gone = [known.pop(digest).command for digest in chosen if digest in known]
            self._write(known)
        return tuple(gone)

    def approvals(self) -> tuple[Approval, ...]:
        """Returns everything that was approved, oldest first."""
        return tuple(sorted(self._read().values(), key=lambda one: (one.at, one.command)))

    def _read(self) -> dict[str, Approval]:
        known = {}
        for row in (records.read_json(self._path) or {}).get("commands", ()):
            try:
                approval = Approval(str(row["command"]), str(row["by"]), int(row["at"]))
            except (TypeError, ValueError, KeyError):
                continue
            # The digest is made anew: a file edited by hand approves only what it spells out.
            known[digest_of(approval.command)] = approval
        return known

    def _write(self, known: dict[str, Approval]) -> None:
        rows = [approval._asdict() for approval in known.values()]
        records.write_json(self._path, {"commands": rows})

    def _locked(self) -> FileLock:
        from gittasks.plumbing.locks import FileLock

        return FileLock(f"{self._path}.flk", self._lock_timeout, "lock for approvals")


def digest_of(command: str) -> str:
    """Returns what an approval is kept by."""
    import hashlib

    return hashlib.sha256(command.encode("utf-8", "surrogateescape")).hexdigest()
