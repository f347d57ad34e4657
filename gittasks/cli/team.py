"""What the commands about agents at work share: their options, and how they tell what happens."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from gittasks.cli import frame
from gittasks.cli.output import cut, escape
from gittasks.domain.errors import Interrupted, UsageFault
from gittasks.domain.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gittasks.cli.output import Output
    from gittasks.workflow.project import Project
    from gittasks.workflow.transcripts import Line, Transcript

_LONGEST = 2000
"""How much of a line of an agent is shown to a person."""

_TIMES = ("at", "due", "until")
_LEAVES = ("settled", "held", "died", "released", "lost")
_REMARKABLE = (
    "held", "died", "lost", "trouble", "outbox", "limit", "paused", "unreachable", "reachable",
    "killed", "stopping", "trespass", "warning",
)  # fmt: skip


def run_options(function: Any) -> Any:
    """Declares the options of `run`."""
    for option in (
        frame.option(
            "--sandbox",
            type=frame.Choice(("auto", "require", "off")),
            help="how agents are kept apart; stronger than git's configuration and the pool file",
        ),
        frame.option("--pool", "pool_file", metavar="FILE", help="another pool file"),
        frame.option("--dry-run", is_flag=True, help="only print who would be given what now"),
        frame.option(
            "--max-tasks", type=frame.IntRange(min=1), metavar="N", help="end after N tasks"
        ),
        frame.option("--once", is_flag=True, help="end when nothing is left to do"),
    ):
        function = option(function)
    return function


def send_words(function: Any) -> Any:
    """Declares the words of `send`."""
    for option in (
        frame.option("-m", "messages", multiple=True, metavar="TEXT", help="the text"),
        frame.argument("words", nargs=-1, metavar="TEXT"),
        frame.argument("target", metavar="SLOT|ID"),
    ):
        function = option(function)
    return function


def tail_options(function: Any) -> Any:
    """Declares the options of `tail`."""
    for option in (
        frame.option(
            "-n", "--lines", "count", type=frame.IntRange(min=0), metavar="N", default=10,
            help="how many lines to begin with (10)",
        ),
        frame.option(
            "-f", "--follow", is_flag=True, help="go on as more is written, until the run ends"
        ),
        frame.argument("target", required=False, metavar="SLOT|ID"),
    ):  # fmt: skip
        function = option(function)
    return function


def text_of(session: frame.Session, words: tuple[str, ...], messages: tuple[str, ...]) -> str:
    """Returns what is to be said: the words, the text of -m, or stdin."""
    from gittasks.cli import texts

    if words and messages:
        raise UsageFault("The text is given twice.", "Give it behind the slot, or with -m.")
    if words == ("-",):
        return texts.words(session, (), "-") or ""
    return " ".join(words) or texts.words(session, messages) or ""


def send(
    session: frame.Session,
    order: Callable[[Project, str, str], dict[str, Any]],
    target: str,
    words: tuple[str, ...],
    messages: tuple[str, ...],
) -> None:
    """Says something to an agent and prints to which."""
    answer = order(session.project, target, text_of(session, words, messages))
    if not session.answer("send", answer):
        session.out.line(f"{answer['task']} {answer['slot']}: said")


def kill(
    session: frame.Session, order: Callable[[Project, str], dict[str, Any]], target: str
) -> None:
    """Ends an agent and prints which."""
    answer = order(session.project, target)
    if not session.answer("kill", answer):
        session.out.line(f"{answer['task']} {answer['slot']}: ended")


def tail(
    session: frame.Session,
    found: Sequence[Transcript],
    target: str | None,
    count: int,
    follow: bool,
) -> int:
    """Prints the end of logs, and what comes where that is asked for."""
    from gittasks.workflow import transcripts

    with_slot = target is None or len(found) > 1
    if follow:
        from gittasks.cli import following

        lines = transcripts.follow(session.project, target, found, count, following.waiting())
        return following.until_interrupted(lambda: _print_lines(session, lines, with_slot))
    last = transcripts.last_lines(found, count)
    if not session.answer("tail", [line._asdict() for line in last]):
        _print_lines(session, last, with_slot)
    return 0


def _print_lines(session: frame.Session, lines: Iterable[Line], with_slot: bool) -> None:
    out = session.out
    for line in lines:
        if out.json:
            out.json_line(line._asdict())
        elif with_slot:
            out.headed(f"{line.slot}:", f" {_shortened(line.text)}")
        else:
            out.line(_shortened(line.text))
        out.flush()


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


# run


def run(
    session: frame.Session,
    once: bool,
    max_tasks: int | None,
    dry_run: bool,
    pool_file: str | None,
    sandbox: str | None,
) -> int:
    """Runs the pool, telling what happens, and returns the exit status."""
    import gc

    from gittasks.runner import loop

    # Unlike other commands this one lives for hours.
    gc.enable()
    progress = Progress(session.out)
    try:
        result = loop.run(
            session.project,
            once=once,
            max_tasks=max_tasks,
            dry_run=dry_run,
            pool_file=None if pool_file is None else session.path(pool_file),
            sandbox=sandbox,
            tell=progress,
        )
    finally:
        progress.clear()
    data = result._asdict()
    data["planned"] = [{"task": task, "slot": slot} for task, slot in result.planned]
    if session.answer("run", data):
        return 0
    if result.why == "dry run":
        session.out.table(result.planned)
        if not result.planned:
            session.out.say("Nobody would be given anything now.")
        return 0
    if result.killed:
        session.out.say(f"Of the agents, {result.killed} had to be killed.")
    if progress.is_for_people:
        counts = ("dispatched", "settled", "held", "died", "checked")
        told = ", ".join(f"{data[name]} {name}" for name in counts)
        session.out.line(f"Ended: {result.why}. {told}.")
    return Interrupted.exit_code if result.why == "by SIGINT" else 0


class Progress:
    """Tells what a runner does: one line that changes on a terminal, JSON lines elsewhere."""

    def __init__(self, out: Output) -> None:
        """Looks once who reads."""
        self._out = out
        self.is_for_people = out.is_terminal and not out.json
        stderr = sys.stderr
        self._is_drawn = (
            self.is_for_people
            and not out.quiet
            and stderr is not None
            and stderr.isatty()
            and os.environ.get("TERM") != "dumb"
        )
        self._line = ""
        self._slots = 0
        self._at_work: set[str] = set()
        self._counts = {"settled": 0, "held": 0, "died": 0}
        self._last = ""
        self._is_unheard = False

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Tells one thing that has happened."""
        if self._out.json:
            return
        if not self.is_for_people:
            self._stream(record)
            return
        self._note(record)
        event = str(record["event"])
        if event in _REMARKABLE:
            self.clear()
            (self._out.warn if event == "trouble" else self._out.say)(_sentence(record))
        self._draw()

    def clear(self) -> None:
        """Takes the line away."""
        if self._line:
            self._write("\r\x1b[K")
            self._line = ""

    def _stream(self, record: Mapping[str, Any]) -> None:
        if self._is_unheard:
            return
        try:
            self._out.json_line(_with_times(record))
            self._out.flush()
        except BrokenPipeError:
            # Whoever started us has left; agents are not cut off for that, they end in order.
            self._is_unheard = True
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
            signal.raise_signal(signal.SIGTERM)

    def _note(self, record: Mapping[str, Any]) -> None:
        event, slot = str(record["event"]), str(record.get("slot", ""))
        if event == "start":
            self._slots = len(record.get("slots", ()))
        elif event == "dispatch":
            self._at_work.add(slot)
        elif event in _LEAVES:
            self._at_work.discard(slot)
        if event in self._counts:
            self._counts[event] += 1
        self._last = _sentence(record)

    def _draw(self) -> None:
        if not self._is_drawn:
            return
        counts = ", ".join(f"{count} {name}" for name, count in self._counts.items() if count)
        parts = [f"{len(self._at_work)} of {self._slots} at work", counts, self._last]
        line = cut(escape(" | ".join(filter(None, parts))), (self._out.width or 80) - 1)
        if line != self._line:
            self._line = line
            self._write(f"\r\x1b[K{line}")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._is_drawn = False


def _with_times(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record with its times spelled as everywhere else."""
    return {
        name: timestamp(int(value)) if name in _TIMES and isinstance(value, int | float) else value
        for name, value in record.items()
    }


def _sentence(record: Mapping[str, Any]) -> str:
    """Returns a record in one line: when, where, what, why."""
    words = [timestamp(int(record["at"]))[11:19]]
    words += [str(record[name]) for name in ("task", "slot", "agent") if record.get(name)]
    words.append(str(record["event"]))
    if record.get("source") and record.get("target"):
        words.append(f"{record['source']} -> {record['target']}")
    elif record.get("target") or record.get("state"):
        words.append(str(record.get("target") or record.get("state")))
    if isinstance(record.get("until"), int | float):
        words.append(f"until {timestamp(int(record['until']))}")
    why = next(
        (record[name] for name in ("error", "reason", "why", "issue") if record.get(name)), ""
    )
    # What a program has said at its end may have many lines.
    why = " ".join(str(why).split())
    return " ".join(words) + (f": {why}" if why else "")
