"""What can go wrong between this program and git, told in git's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PREFIXES = ("fatal: ", "error: ", "warning: ", "hint: ")


def own_words(stderr: str) -> str:
    """Returns the one line of git's error output that says most, as a sentence."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if not lines:
        return ""
    chosen = lines[-1]
    for prefix in _PREFIXES[:2]:
        for line in lines:
            if line.startswith(prefix):
                chosen = line
                break
        else:
            continue
        break
    for prefix in _PREFIXES:
        chosen = chosen.removeprefix(prefix)
    return chosen if chosen.endswith((".", "!", "?")) else chosen + "."


class BadSetting(ValueError):
    """A setting in git's configuration has a value that it cannot have."""


class GitError(Exception):
    """git ended with a failure."""

    def __init__(self, command: Sequence[str] = (), status: int = -1, stderr: str = "") -> None:
        super().__init__(command, status, stderr)
        self.command: tuple[str, ...] = tuple(command)
        self.status = status
        self.stderr = stderr

    def __str__(self) -> str:
        return own_words(self.stderr) or f"git {self._verb()} ended with status {self.status}."

    def _verb(self) -> str:
        return self.command[0] if self.command else "did not start and"


class GitTimeout(GitError):
    """A process took longer than its time limit and was stopped."""

    def __init__(self, command: Sequence[str] = (), seconds: float = 0, stderr: str = "") -> None:
        super().__init__(command, -9, stderr)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"{' '.join(self.command[:2])} did not end within {self.seconds:g} seconds."


class ProgramMissing(GitError):
    """A program is not there, or is none that can be started."""

    def __init__(self, command: Sequence[str] = (), reason: str = "") -> None:
        super().__init__(command, 127, reason)
        self.program: str = self.command[0] if self.command else ""

    def __str__(self) -> str:
        if not self.program:
            return "There is no program to start."
        return _sentence(f"The program {self.program} cannot be started", self.stderr)


class NotARepository(GitError):
    """There is no repository here that git is willing to use."""


class RefMoved(GitError):
    """A ref does not have the value that the caller expected."""

    def __init__(
        self,
        name: str,
        expected: str | None,
        actual: str | None,
        command: Sequence[str] = (),
        status: int = 128,
        stderr: str = "",
    ) -> None:
        super().__init__(command, status, stderr)
        self.name = name
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        actual = f"is at {self.actual}" if self.actual else "does not exist"
        expected = f"at {self.expected}" if self.expected else "not to exist"
        return f"{self.name} {actual} but was expected {expected}."


class RefLocked(GitError):
    """A lock file of git stands in the way of a ref."""

    def __init__(
        self, path: str, command: Sequence[str] = (), status: int = 128, stderr: str = ""
    ) -> None:
        super().__init__(command, status, stderr)
        self.path = path

    def __str__(self) -> str:
        return f"The lock file {self.path} exists."


class ObjectMissing(GitError):
    """An object is not in the repository, or not of the kind that was asked for."""


class RemoteError(GitError):
    """Something failed between this repository and another one; `words` say it in one line."""

    def __init__(
        self,
        remote: str,
        words: str = "",
        command: Sequence[str] = (),
        status: int = 128,
        stderr: str = "",
    ) -> None:
        super().__init__(command, status, stderr)
        self.remote = remote
        self.words = words

    def __str__(self) -> str:
        return _sentence(f"The remote {self.remote} failed", self.words)


class NoSuchRemote(RemoteError):
    """The configuration knows no remote of this name."""

    def __str__(self) -> str:
        return f"There is no remote {self.remote}."


class RemoteRaced(RemoteError):
    """Refs of the remote do not have the expected values: somebody else was faster."""

    def __init__(
        self,
        remote: str,
        names: Sequence[str],
        words: str = "",
        command: Sequence[str] = (),
        status: int = 1,
        stderr: str = "",
    ) -> None:
        super().__init__(remote, words, command, status, stderr)
        self.names: tuple[str, ...] = tuple(names)

    def __str__(self) -> str:
        verb = "has" if len(self.names) == 1 else "have"
        return f"On the remote {self.remote}, {', '.join(self.names)} {verb} moved."


class RemoteRefused(RemoteError):
    """The remote does not want this: a hook, a rule, a right, a full disk or a lock of its own.

    `names` are the refs refused themselves, not those that fell with them; none of them when all
    was refused before any ref was looked at. `words` are the server's, and may be several lines.
    """

    def __init__(
        self,
        remote: str,
        names: Sequence[str] = (),
        words: str = "",
        command: Sequence[str] = (),
        status: int = 1,
        stderr: str = "",
    ) -> None:
        super().__init__(remote, words, command, status, stderr)
        self.names: tuple[str, ...] = tuple(names)

    def __str__(self) -> str:
        what = ", ".join(self.names) or "this"
        return _sentence(f"The remote {self.remote} refused {what}", self.words)


class RemoteUnreachable(RemoteError):
    """The remote is not there, does not answer, or fell silent in the middle."""

    def __init__(
        self,
        remote: str,
        words: str = "",
        command: Sequence[str] = (),
        status: int = 128,
        stderr: str = "",
        *,
        seconds: float | None = None,
        timed_out: bool = False,
        maybe_done: bool = False,
    ) -> None:
        super().__init__(remote, words, command, status, stderr)
        self.seconds = seconds
        self.timed_out = timed_out or seconds is not None
        self.maybe_done = maybe_done

    def __str__(self) -> str:
        if self.seconds is not None:
            told = f"{self.seconds:.0f}" if self.seconds >= 1 else f"{self.seconds:.3g}"
            return f"The remote {self.remote} did not answer within {told} seconds."
        verb = "was lost" if self.maybe_done else "cannot be reached"
        return _sentence(f"The remote {self.remote} {verb}", self.words)


class RemoteAsks(RemoteError):
    """The remote wants a password, a key or a confirmation that nobody is there to give."""

    def __str__(self) -> str:
        start = f"The remote {self.remote} wants to know who asks, and nobody can type an answer"
        return _sentence(start, self.words)


def _sentence(start: str, words: str) -> str:
    said = " ".join(words.split())
    if not said:
        return f"{start}."
    return f"{start}: {said}" if said.endswith((".", "!", "?")) else f"{start}: {said}."


class LockTimeout(Exception):
    """A lock was not free in time."""

    def __init__(self, path: str, holder: str, seconds: float, what: str = "lock") -> None:
        super().__init__(path, holder, seconds, what)
        self.path = path
        self.holder = holder
        self.seconds = seconds
        self.what = what

    def __str__(self) -> str:
        return (
            f"The {self.what} was not free within {self.seconds:g} seconds; held by {self.holder}."
        )
