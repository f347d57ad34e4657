"""One slot of the pool with whoever sits in it: what is heard, what is said, and how it ends.

    IDLE -> SPAWNING -> BUSY <-> WAITING -> ENDING -> IDLE

A seat only looks and speaks. What a finished turn means is decided elsewhere; until then
`settled` holds how it ended. Ending takes its time without anybody waiting: the program is asked,
then told, then killed, and the seat is free when nothing of it is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gittasks.agents.base import Activity, Compacted, Exited, Retrying, Settled, Started, Usage
from gittasks.domain.turn import LOOP
from gittasks.plumbing.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gittasks.agents.base import AgentRun, Event, RunSpec
    from gittasks.domain.pool import Agent
    from gittasks.plumbing.locks import FileLock
    from gittasks.workspaces.records import ClaimRecord
    from gittasks.workspaces.runs import RunRecord

GRACE = 3.0
"""How many seconds a program has to end after it was asked, and again after SIGTERM."""

UNHEARD = 10.0
"""How many seconds a turn that was interrupted may take to end before its program is ended."""


class Stint(NamedTuple):
    """What a seat works on: the claim, its run, and how its agent is started anew if it dies."""

    record: ClaimRecord
    run: RunRecord
    spec: RunSpec
    start: Callable[[RunSpec], AgentRun]
    brief: str
    """What an agent is told that knows nothing yet."""
    first: str
    """What it is told first: the brief, or what has happened since its session ended."""
    is_live: bool
    can_resume: bool


class Seat:
    """One slot; everything about it that changes."""

    def __init__(self, entry: Agent, name: str, number: int, lock: FileLock) -> None:
        """Takes the lock of the slot, which is held already."""
        self.entry = entry
        self.name = name
        self.number = number
        self.lock = lock
        self.is_leaving = False
        """The count was lowered, or the runner stops: nobody is seated here any more."""
        self.words: list[tuple[float, int]] = []
        """When how many tokens were written, for the agent's rate."""
        self._forget()

    def _forget(self) -> None:
        self.stint: Stint | None = None
        self.agent: AgentRun | None = None
        self.state = "IDLE"
        self.settled: Settled | None = None
        self.died: str | None = None
        self.attempts: dict[str, int] = {}
        self.errors = 0
        self.last_prompt = ""
        self.usage = Usage()
        self.compactions = 0
        self.activity: Activity | None = None
        self.activity_since = 0.0
        self.heard_at = 0.0
        self.interrupted_at: float | None = None
        self.looping: str | None = None
        self.stopped: str | None = None
        self.due: float | None = None
        """When what failed is tried again."""
        self.why = ""
        self.ending_at = 0.0
        self.ending_stage = 0
        self.was_killed = False
        self.after: Callable[[], None] | None = None
        self._call = ""
        self._calls = 0

    @property
    def is_free(self) -> bool:
        """Tells whether somebody can be seated."""
        return self.state == "IDLE" and not self.is_leaving

    @property
    def is_working(self) -> bool:
        """Tells whether the seat holds a claim that goes on."""
        return self.state in ("SPAWNING", "BUSY", "WAITING")

    def take(self, stint: Stint, now: float) -> None:
        """Seats an agent: its program is started and told what to do."""
        self._forget()
        self.stint = stint
        self.state = "SPAWNING"
        self.agent = stint.start(stint.spec)
        is_fresh = stint.spec.session is None or self.agent.session is None
        # A session that is gone knows nothing any more.
        self.say(stint.brief if is_fresh else stint.first, now)

    def say(self, text: str, now: float) -> None:
        """Begins a turn; an agent that is gone is replaced, and one that knows nothing is told all."""
        stint = self.stint
        assert stint is not None
        assert self.agent is not None
        is_gone = stint.is_live and self.died is not None
        self.state = "BUSY"
        self.died = self.settled = self.looping = self.stopped = self.interrupted_at = None
        self.due = None
        self.why = ""
        self._call, self._calls = "", 0
        self.activity = None
        self.last_prompt = text
        self.heard_at = now
        try:
            if is_gone:
                text = self._started_anew(stint, text)
            elif not (stint.is_live or stint.can_resume):
                # Each of its processes begins from nothing.
                text = _after_brief(stint, text)
            self.agent.prompt(text)
        except GitError as error:
            self.died = str(error)

    def _started_anew(self, stint: Stint, text: str) -> str:
        """Replaces an agent that is gone; returns what the new one has to be told."""
        assert self.agent is not None
        session = self.agent.session if stint.can_resume else None
        self.agent.kill()
        self.agent = stint.start(stint.spec._replace(session=session))
        return _after_brief(stint, text) if session is None else text

    def hear(self, now: float) -> None:
        """Takes in what the agent's program has told since."""
        if self.agent is None:
            return
        for event in self.agent.events():
            self.heard_at = now
            self._note(event, now)

    def _note(self, event: Event, now: float) -> None:
        match event:
            case Started():
                self.activity = Activity()
                self.activity_since = now
            case Activity():
                self._note_activity(event, now)
            case Usage():
                written = event.output - self.usage.output
                if written > 0:
                    self.words = [*self.words[-(LOOP - 1) :], (now, written)]
                self.usage = event
            case Retrying():
                self.why = f"trying again ({event.attempt}): {event.reason}"
            case Compacted():
                self.compactions += 1
            case Settled():
                if self.settled is None:
                    self.settled = event
                    if event.outcome == "aborted":
                        self._remember_command()
            case Exited():
                self.died = f"it ended with {event.code}"

    def _note_activity(self, event: Activity, now: float) -> None:
        self.activity = Activity() if event.is_over else event
        self.activity_since = now
        if event.is_over or event.tool is None:
            return
        call = f"{event.tool}\0{event.key or event.target}"
        self._calls = self._calls + 1 if call == self._call else 1
        self._call = call
        if self._calls >= LOOP and self.looping is None:
            self.looping = event.target or event.tool
            self.interrupt(now)

    def interrupt(self, now: float) -> None:
        """Breaks the turn off; the command that runs now is remembered."""
        if self.agent is None or self.interrupted_at is not None or self.settled is not None:
            return
        self.interrupted_at = now
        self._remember_command()
        self.agent.interrupt()

    def _remember_command(self) -> None:
        """Keeps what ran when the turn was broken off, by us or by the program itself."""
        if self.stopped is None and self.activity is not None and self.activity.tool is not None:
            self.stopped = self.activity.target or self.activity.tool

    def is_turn_over(self, now: float) -> bool:
        """Tells whether the turn has ended; a program that does not hear is ended for it."""
        if self.state != "BUSY" or self.agent is None:
            return False
        if self.settled is None and self.died is not None and self.interrupted_at is not None:
            # It ended instead of ending its turn.
            self.settled = Settled("aborted", self.died)
        if self.settled is not None or self.died is not None:
            return True
        if self.interrupted_at is not None and now - self.interrupted_at > UNHEARD:
            self.interrupted_at = now
            self.agent.kill()
        return False

    def wait_until(self, due: float, why: str) -> None:
        """Lets the seat rest; its agent, if it lives, keeps its place."""
        self.state = "WAITING"
        self.due = due
        self.why = why

    def end(self, now: float, after: Callable[[], None] | None = None) -> None:
        """Begins to end the agent; `after` is called when nothing of it is left."""
        if self.state == "ENDING":
            return
        self.after = after
        self.state = "ENDING"
        self.ending_at = now
        self.ending_stage = 0
        if self.agent is None:
            return
        if self.died is None:
            self.agent.close()
        else:
            # What an agent leaves behind that is dead hears nobody.
            self.agent.kill()

    def go_on_ending(self, now: float) -> bool:
        """Takes the next step of ending where it is time for it; tells whether the seat is free."""
        if self.state != "ENDING":
            return False
        if self.agent is not None and self.agent.is_alive():
            if now - self.ending_at >= GRACE:
                self.ending_at = now
                self.ending_stage += 1
                if self.ending_stage == 1:
                    self.agent.terminate()
                else:
                    self.was_killed = True
                    self.agent.kill()
            # Whoever cannot say what is left to say would not end.
            self.agent.events()
            return False
        if self.agent is not None:
            # What left the group of its program is found by its mark.
            self.agent.kill()
        after, was_killed = self.after, self.was_killed
        self._forget()
        self.was_killed = was_killed
        if after is not None:
            after()
        return True

    def vacate(self) -> None:
        """Forgets whoever sat here."""
        self._forget()

    def end_now(self) -> None:
        """Kills the agent and all that it has started."""
        if self.agent is not None:
            self.agent.kill()
            self.was_killed = True

    def rate(self) -> float | None:
        """Returns how many tokens the agent writes in a second, None before it was measured."""
        if len(self.words) < 2:
            return None
        seconds = self.words[-1][0] - self.words[0][0]
        written = sum(count for _, count in self.words[1:])
        return written / seconds if seconds > 0 else None

    def facts(self) -> Mapping[str, object]:
        """Returns what the views of a runner show of the agent."""
        activity = self.activity
        return {
            "activity": None
            if activity is None
            else {
                "tool": activity.tool,
                "target": activity.target[:500],
                "since": self.activity_since,
            },
            "tokens": self.usage.tokens,
            "cost": self.usage.cost,
            "context": self.usage.context,
            "compactions": self.compactions,
            "session": self.agent.session if self.agent is not None else None,
            "pid": self.agent.pid if self.agent is not None else None,
        }


def _after_brief(stint: Stint, text: str) -> str:
    """Returns words for an agent that knows nothing: all it has to know, and then the words."""
    return text if text == stint.brief else f"{stint.brief}\n\n{text}"
