"""`git tasks board`: one page to look at the project, as a file or kept up to date on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gittasks.cli import frame
from gittasks.domain.errors import UsageFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.cli.board.server import Answer
    from gittasks.workflow.project import Project

_FRESH_SECONDS = 60
"""How long an answer may stand that depends on more than the ledger, as on what is trusted here."""


@frame.command("board", past=True)
@frame.option("--html", "file", metavar="FILE", help="write the page to FILE; - is stdout")
@frame.option(
    "--serve", is_flag=True, help="serve the page on this machine, and keep it up to date"
)
@frame.option(
    "--port", type=frame.IntRange(min=0, max=65535), metavar="N", help="serve at port N (any)"
)
def command(session: frame.Session, file: str | None, serve: bool, port: int | None) -> int:
    """Show tasks, graph, timeline, inbox and numbers on one page.

    The page is one file that needs nothing else, also from a disk without a network. Served, it
    follows the ledger; only this machine can ask, only with the address that is printed, and only
    to read. Ctrl-C ends it.
    """
    if serve == (file is not None):
        raise UsageFault("The page is either written or served.", "Give --html FILE, or --serve.")
    if file is not None:
        if port is not None:
            raise UsageFault("A file has no port.", "Give --port together with --serve.")
        _write(session, file)
        return 0
    if session.options.at is not None:
        raise UsageFault(
            "What is served follows the ledger as it is now.",
            "Look at the past with `git tasks board --html FILE --at REV`.",
        )
    return _serve(session, port or 0)


def _write(session: frame.Session, name: str) -> None:
    from gittasks.cli.board import page
    from gittasks.domain.times import timestamp
    from gittasks.workflow.board import board

    if name == "-" and session.out.json:
        raise UsageFault("Only one document fits on stdout.", "Leave --json out, or name a file.")
    path = session.path(name)
    if name != "-":
        _require_place(path, name)
    data = board(session.project)
    text = page.page(page.prepared(data)).encode()
    if name == "-":
        session.out.raw(text)
        return
    try:
        _replace(path, text)
    except OSError as error:
        raise _unwritable(name, error) from error
    as_of = timestamp(data["as_of"])
    about = {"file": name, "bytes": len(text), "tasks": len(data["tasks"]), "as_of": as_of}
    if not session.answer("board", about):
        session.out.say(f"Wrote {len(data['tasks'])} tasks to {name}, as of {as_of}.")


def _require_place(path: str, name: str) -> None:
    """Raises UsageFault where no file can be, before any work is done."""
    if os.path.isdir(path) or not os.path.basename(path):
        raise UsageFault(f"{name} is a folder.", "Name a file in it.")
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise UsageFault(f"There is no folder for {name}.", "Make it, or name another one.")


def _unwritable(name: str, error: OSError) -> UsageFault:
    return UsageFault(
        f"{name} cannot be written: {error.strerror}.", "Name a file in a folder of your own."
    )


def _replace(path: str, text: bytes) -> None:
    """Writes a file as a whole; whoever reads it meanwhile gets the one before."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe or a terminal is written to, not put something else in its place.
        with open(path, "wb") as stream:
            stream.write(text)
        return
    beside = f"{path}.{os.getpid()}.new"
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with open(file, "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _serve(session: frame.Session, port: int) -> int:
    import gc
    import secrets
    import time

    from gittasks.cli import following
    from gittasks.cli.board.server import Server
    from gittasks.workflow.watch import Follower, from_remote

    # Unlike other commands this one lives for hours.
    gc.enable()
    project, tell = session.project, session.out.warn
    look = _looking(project, time.monotonic)
    server = Server(port, secrets.token_urlsafe(24), look())
    # Nobody has to read what it prints; it ends when it is told to.
    follower = Follower(project, tell=tell, wait=time.sleep, refresh=from_remote(project, tell))
    server.start()

    def follow() -> None:
        if not session.answer("board", {"url": server.url}):
            session.out.line(server.url)
        session.out.flush()
        session.out.say("Open this address in a browser. Ctrl-C ends it.")
        for answer in follower.answers(look):
            server.show(answer)

    try:
        return following.until_interrupted(follow)
    finally:
        server.stop()


def _looking(project: Project, elapsed: Callable[[], float]) -> Callable[[], Answer]:
    """Returns what gives the newest answer; it is made anew only where it can differ."""
    from gittasks.cli.board import page
    from gittasks.cli.board.server import Answer
    from gittasks.workflow.board import board, good_until

    kept: Answer | None = None
    tip: str | None = None
    due = 0.0

    def look() -> Answer:
        nonlocal kept, tip, due
        if kept is not None and project.ledger.tip == tip and elapsed() < due:
            return kept
        data = board(project)
        tip = project.ledger.tip
        end = good_until(data)
        rest = _FRESH_SECONDS if end is None else min(end + 1 - data["as_of"], _FRESH_SECONDS)
        due = elapsed() + rest
        tag = _tag(data)
        if kept is None or kept.tag != tag:
            prepared = page.prepared(data)
            kept = Answer(page.page(prepared, tag=tag).encode(), prepared.encode(), tag)
        return kept

    return look


def _tag(data: dict[str, Any]) -> str:
    """Returns what names the data, but for what a clock alone has changed in it."""
    import hashlib
    import json

    told = {name: data[name] for name in ("ledger", "inbox", "inbox_left_out", "ready")}
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    return f'"{data["ledger"][:40]}-{digest[:16]}"'
