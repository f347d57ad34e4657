"""What the commands share that follow the ledger until somebody has seen enough."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

from gittasks.domain.errors import Interrupted
from gittasks.domain.times import timestamp
from gittasks.workflow.watch import Follower, from_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.cli.frame import Session


Answer = TypeVar("Answer")


def follower(session: Session) -> Follower:
    """Returns who follows the ledger for this run."""
    import gc

    # Unlike other commands this one lives for hours.
    gc.enable()
    project, tell = session.project, session.out.warn
    return Follower(project, tell=tell, wait=waiting(), refresh=from_remote(project, tell))


def repeated(session: Session, look: Callable[[], Answer], show: Callable[[Answer], None]) -> int:
    """Shows an answer, and the whole of it again whenever it changed; returns the exit status."""
    one = follower(session)

    def follow() -> None:
        for number, answer in enumerate(one.answers(look)):
            if number and not session.out.json:
                _separate(session)
            show(answer)
            session.out.flush()

    return until_interrupted(follow)


def until_interrupted(follow: Callable[[], None]) -> int:
    """Follows, and returns the exit status; whoever presses Ctrl-C knows why it ends."""
    try:
        follow()
    except KeyboardInterrupt:
        return Interrupted.exit_code
    return 0


def _separate(session: Session) -> None:
    """Prints what stands between two answers: for a person a line with the time."""
    if session.out.is_terminal:
        session.out.line(f"-- {timestamp(session.project.clock())[11:19]} --", "dim")
    else:
        session.out.line()


def waiting() -> Callable[[float], None]:
    """Returns how to wait; it ends with BrokenPipeError once nobody reads stdout any more."""
    import select

    try:
        stdout = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return time.sleep
    poll = select.poll()
    # Only that the other end is closed is told, whatever is asked for.
    poll.register(stdout, 0)

    def wait(seconds: float) -> None:
        if poll.poll(seconds * 1000):
            raise BrokenPipeError

    return wait
