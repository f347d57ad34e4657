"""The runner: one process that keeps the slots of a pool at work, an ordinary client of the ledger.

It may be killed at any instant: what it knows beyond the ledger is written down before it is
needed (`workspaces.runs`), and the next runner begins with what this one left. One tick looks at
everything once and waits for nothing: orders, the ledger, the agents, checks, budgets, and at last
whom to seat. Two runners, here or in other clones, meet only in the ledger.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks.agents import ADAPTERS, orphans
from gittasks.agents.environment import own_program
from gittasks.domain import schedule
from gittasks.domain.config import parse_duration
from gittasks.domain.errors import Busy, GittasksError, Refused
from gittasks.domain.pool import agent_name
from gittasks.plumbing import refs
from gittasks.plumbing.dialogue import now as wall_clock
from gittasks.runner import hiring, recovery, settling
from gittasks.runner.apart import Apart
from gittasks.runner.budgets import Budgets
from gittasks.runner.checking import Checker
from gittasks.runner.crew import Crew
from gittasks.runner.dispatching import Dispatcher
from gittasks.runner.orders import Orders
from gittasks.runner.providers import Provider
from gittasks.runner.upkeep import Upkeep
from gittasks.runner.wording import Wording
from gittasks.workflow import failures
from gittasks.workflow import pool as pools
from gittasks.workspaces import records

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gittasks.agents.base import Capabilities
    from gittasks.domain.pool import Agent
    from gittasks.runner.seat import Seat, Stint
    from gittasks.workflow.project import Project
    from gittasks.workspaces.runs import RunRecord

PAUSE = 0.05
"""How many seconds lie between two ticks while somebody is at work."""

IDLE_PAUSE = 0.25
"""The same while nobody is."""

SILENCE = 3600.0
"""How many seconds an agent may be silent where gittasks.agentTimeout says nothing."""

_SAID_AGAIN = 60.0


class Result(NamedTuple):
    """What a runner has done when it ends."""

    dispatched: int = 0
    settled: int = 0
    held: int = 0
    died: int = 0
    checked: int = 0
    killed: int = 0
    """How many agents had to be killed to end."""
    planned: tuple[tuple[str, str], ...] = ()
    """What a dry run would give to whom: task and slot."""
    why: str = ""
    """Why it ended."""


def run(
    project: Project,
    *,
    once: bool = False,
    max_tasks: int | None = None,
    dry_run: bool = False,
    pool_file: str | None = None,
    sandbox: str | None = None,
    tell: Callable[[Mapping[str, Any]], None] = lambda _record: None,
    clock: Callable[[], float] = wall_clock,
) -> Result:
    """Runs the pool until it is stopped; with `once`, until nothing is left to do.

    Raises PoolFault for a pool that cannot be started, and Busy, naming the runner, where all
    slots are taken.
    """
    runner = Runner(
        project, once=once, max_tasks=max_tasks, pool_file=pool_file, sandbox=sandbox,
        tell=tell, clock=clock,
    )  # fmt: skip
    if dry_run:
        return Result(planned=runner.foreseen(), why="dry run")
    with runner, _Signals(runner):
        return runner.work()


class Runner:
    """One runner of one clone, with its seats."""

    def __init__(
        self,
        project: Project,
        *,
        once: bool = False,
        max_tasks: int | None = None,
        pool_file: str | None = None,
        sandbox: str | None = None,
        tell: Callable[[Mapping[str, Any]], None] = lambda _record: None,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        """Reads the pool and looks at what it names; nothing is started or written yet."""
        project.require_ledger()
        if project.environ.get(orphans.VARIABLE):
            raise Refused(
                "An agent of a runner starts no runner.", "Start it from a terminal of your own."
            )
        self.project = project
        self.clock = clock
        self.now = clock()
        self.once = once
        self.pool = pools.load(project, pool_file)
        pools.require_startable(project, self.pool, pool_file)
        self.id = os.urandom(8).hex()
        self.process = records.own_process()
        self.lease = parse_duration(project.settings.runner_lease)
        self.silence = project.config.get_seconds("gittasks.agentTimeout", SILENCE)
        self._tell = tell
        self._providers: dict[tuple[str, str], Provider] = {}
        self._capabilities: dict[str, Capabilities] = {}
        self._avoided: dict[str, tuple[int, float]] = {}
        self._seen: bytes | None = None
        self.unsettled: dict[str, int] = {}
        self._troubles: dict[str, float] = {}
        self.stopping = ""
        """Why the runner is about to end, empty while it is not."""
        self._is_at_once = False
        self.counts = dict.fromkeys(Result._fields[:5], 0)
        self.killed = 0
        self.wording = Wording(project)
        self.apart = Apart(project, self.pool, sandbox)
        self.budgets = Budgets(self)
        self.crew = Crew(self, self.budgets.pauses)
        self.checker = Checker(self, max(1, (os.cpu_count() or 2) // 2))
        self.orders = Orders(self)
        self.dispatcher = Dispatcher(self, self.crew, max_tasks)
        self.upkeep = Upkeep(self, self.crew, self.checker, self.dispatcher)

    # What a runner is from beginning to end.

    def __enter__(self) -> Runner:
        """Settles what earlier runners have left, and takes the slots that are free."""
        self.project.recover()
        self.apart.begin()
        if not pools.views(self.project):
            pools.clear_control(self.project)
        recovery.recover(self)
        self.crew.take_seats()
        if not self.seats:
            raise Busy(
                f"Another runner has every slot of the pool: {self.crew.holder}.",
                "Let it work, give the agents more maxSlots, or end it with `git tasks pool stop`.",
            )
        self.upkeep.publish(force=True)
        self.say("start", slots=[seat.name for seat in self.seats], sandbox=self.step)
        if self.step == "bare" and self.apart.is_wished:
            self.say("warning", error=f"Agents are not kept apart: {self.apart.step.why}")
        return self

    def __exit__(self, *_: object) -> None:
        """Ends whoever is still at work and gives the slots back, whatever has happened."""
        for seat in self.seats:
            if seat.state != "IDLE":
                self.killed += 1
                seat.end_now()
        self.checker.stop()
        self.crew.leave()
        self.upkeep.leave(self.killed)

    def work(self) -> Result:
        """Ticks until the work is done or somebody stops it."""
        while True:
            self.tick()
            if self._has_ended():
                why = self.stopping or self.dispatcher.why_over()
                self.upkeep.finish()
                done = Result._make((*self.counts.values(), self.killed, (), why))
                self.say("end", why=why, killed=self.killed, **self.counts)
                return done
            time.sleep(PAUSE if self._is_lively() else IDLE_PAUSE)

    def tick(self) -> None:
        """Looks at everything once; what goes wrong with one thing stops none of the others."""
        self.now = self.clock()
        self._guarded(self.orders.take)
        self._guarded(self._look_at_ledger)
        if self.stopping:
            # First of all, so that nobody is told anything any more.
            self._guarded(self._go_on_stopping)
        for seat in self.seats:
            self._guarded(partial(self._attend, seat), seat)
        self._guarded(self.budgets.tick)
        self._guarded(lambda: self.checker.tick(is_starting=not self.stopping))
        self._guarded(self.upkeep.tick)
        if not self.stopping:
            self._guarded(self.crew.adjust)
            self._guarded(self.dispatcher.tick)
        self._guarded(self.upkeep.publish)

    def foreseen(self) -> tuple[tuple[str, str], ...]:
        """Returns what would be given to whom now, as task and slot; takes and writes nothing."""
        self.crew.imagine_seats()
        return tuple((hope.task.id, seat.name) for seat, hope in self.dispatcher.planned())

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """Begins to end: nobody is seated any more, and whoever works gives the task back."""
        if not self.stopping:
            self.stopping = why
            self.say("stopping", why=why)
        self._is_at_once = self._is_at_once or at_once

    def _go_on_stopping(self) -> None:
        for seat in self.seats:
            if self._is_at_once and seat.state != "IDLE":
                seat.end_now()
            if seat.is_working:
                settling.stop(self, seat, f"The runner was stopped: {self.stopping}.")
        self.checker.stop()

    def _has_ended(self) -> bool:
        if any(seat.state != "IDLE" for seat in self.seats) or self.checker.running:
            return False
        if self.stopping:
            return True
        if self.dispatcher.is_full:
            return not self.checker.waiting()
        if not self.once or self.checker.waiting() or self.dispatcher.may_go_on():
            return False
        return not recovery.is_anything_left(self)

    def _is_lively(self) -> bool:
        return bool(self.checker.running) or any(s.state != "IDLE" for s in self.seats)

    def _guarded(self, step: Callable[[], object], seat: Seat | None = None) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever fails, the others go on
            self._seen = None
            known = error if isinstance(error, GittasksError) else failures.told(error)
            if known is None:
                path = failures.report(self.project.state_dir, error, "run")
                self._trouble(f"a defect ({error!r})", report=path)
                self._give_up(seat)
            else:
                self._trouble(known.message)

    def _trouble(self, words: str, **facts: Any) -> None:
        """Tells what went wrong, and not again at every tick."""
        if self._troubles.get(words, -_SAID_AGAIN) + _SAID_AGAIN <= self.now:
            self._troubles[words] = self.now
            self.say("trouble", error=words, **facts)

    def _give_up(self, seat: Seat | None) -> None:
        """Gives back the task of a seat that we cannot go on with: our fault, not the agent's."""
        if seat is not None and seat.is_working:
            settling.give_back(self, seat, died=True, reason="The runner failed.")

    # One seat.

    def _attend(self, seat: Seat) -> None:
        if seat.state != "ENDING":
            seat.hear(self.now)
        hiring.note_process(self, seat)
        if seat.is_turn_over(self.now):
            settling.settle_turn(self, seat)
        elif seat.state == "BUSY" and self.now - seat.heard_at > self.silence:
            seat.interrupt(self.now)
        elif seat.state == "WAITING" and seat.due is not None and self.now >= seat.due:
            seat.say(seat.last_prompt, self.now)
        if seat.go_on_ending(self.now):
            self.killed += seat.was_killed
            self.wake()

    def end(self, seat: Seat, then: Callable[[Stint], None] | None = None) -> None:
        """Ends the agent of a seat; `then` is done when nothing of it is left."""
        stint = seat.stint
        assert stint is not None

        def after() -> None:
            # Where that fails the run stays on record, and is settled a little later.
            self.leave(stint.run)
            if then is not None:
                then(stint)
            recovery.forget(self, stint.run)

        seat.end(self.now, after)

    def leave(self, run: RunRecord) -> None:
        """Brings in what an agent that is gone has made, and tells what it should not have done."""
        for sentence in self.apart.leave(run):
            self.say("trespass", slot=run.slot, task=run.task, error=sentence)
        moved = self.apart.moved()
        at_work = {s.stint.run.task for s in self.seats if s.stint is not None} | {run.task}
        for sentence in moved:
            # Nobody knows which of those who were at work it was.
            self.say("trespass", tasks=sorted(at_work), error=sentence)

    def provider(self, entry: Agent) -> Provider:
        """Returns the provider of an entry of the pool."""
        key = (entry.type, entry.provider)
        if key not in self._providers:
            self._providers[key] = Provider(entry.provider or entry.type)
        return self._providers[key]

    def capabilities(self, entry: Agent, *, again: bool = False) -> Capabilities:
        """Returns what the program of an entry can do here, as it was when it was asked."""
        name = agent_name(entry)
        if again or name not in self._capabilities:
            program = hiring.program_of(entry)
            self._capabilities[name] = ADAPTERS[program.type].probe(program, self.project.environ)
        return self._capabilities[name]

    # The ledger.

    def _look_at_ledger(self) -> None:
        """Reads the ledger anew where it has moved, and stops agents whose claims are over."""
        mark = refs.mark(self.project.repo, self.project.branch)
        if mark is not None and mark == self._seen:
            return
        self._seen = mark
        self.project.ledger.refresh()
        self.wake()
        trouble = self.wording.trouble()
        if trouble is not None:
            self.say("trouble", error=trouble)
        graph = self.project.ledger.graph()
        for seat in self.seats:
            if not seat.is_working or seat.stint is None:
                continue
            record = records.with_claim(self.project.state_dir, seat.stint.run.claim)
            # A task may have got another number when it was shared.
            task = graph.get(seat.stint.run.task if record is None else record.task)
            if task is None or task.claim != seat.stint.run.claim:
                self.tell("lost", seat, error="The claim is over.")
                self.end(seat)

    def is_behind(self, oid: str) -> bool:
        """Tells whether a former tip of the ledger is part of the present one."""
        from gittasks.plumbing import merging

        return merging.is_ancestor(self.project.repo, oid, self.project.ledger.tip)

    def wake(self) -> None:
        """Notes that something may be given to somebody by now."""
        self.dispatcher.is_due = True

    def has_written(self) -> None:
        """Notes that events were appended, which the others do not have yet."""
        self.upkeep.has_news = True
        self.wake()

    def avoid(self, task_id: str) -> int:
        """Leaves a task alone for a while; returns how often in a row it could not be begun."""
        tries = self._avoided.get(task_id, (0, 0.0))[0] + 1
        self._avoided[task_id] = tries, self.now + schedule.back_off(tries + 2)
        return tries

    def has_begun(self, task_id: str) -> None:
        """Notes that a task could be begun after all."""
        self._avoided.pop(task_id, None)

    def is_avoided(self, task_id: str) -> bool:
        """Tells whether a task is left alone now."""
        return self._avoided.get(task_id, (0, 0.0))[1] > self.now

    @property
    def has_avoided(self) -> bool:
        """Tells whether some task is left alone only for a while, and not for good."""
        return any(
            until > self.now and tries < hiring.TRIES for tries, until in self._avoided.values()
        )

    # What others need of the host.

    @property
    def step(self) -> str:
        """Returns how agents are kept apart: bubblewrap, limits or bare."""
        return self.apart.step.name

    @property
    def seats(self) -> list[Seat]:
        """Returns the seats of this runner."""
        return self.crew.seats

    def at_work(self) -> set[str]:
        """Returns the claims that somebody here works on, checks included."""
        claims = {seat.stint.run.claim for seat in self.seats if seat.stint is not None}
        return claims | {one.run.claim for one in self.checker.running.values()}

    def own_program(self) -> tuple[str, ...]:
        """Returns the argument list that reaches this very program."""
        return own_program(self.project.environ)

    def sweep(self, mark: str) -> int:
        """Kills all that carries the mark of a run; returns how many there were."""
        return orphans.sweep(mark)

    # What is told.

    def tell(self, event: str, seat: Seat, **facts: Any) -> None:
        """Tells what has happened at a seat, and counts it."""
        task = seat.stint.run.task if seat.stint is not None else None
        if event == "dispatch":
            self.counts["dispatched"] += 1
        elif event in self.counts:
            self.counts[event] += 1
        self.say(event, slot=seat.name, task=task, **facts)

    def say(self, event: str, **facts: Any) -> None:
        """Tells whoever watches what has happened."""
        if event == "checked":
            self.counts["checked"] += 1
        kept = {name: value for name, value in facts.items() if value is not None}
        self._tell({"at": self.now, "event": event, **kept})


class _Signals:
    """Turns the signals that end a program into a runner that stops; the second one is at once."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._kept: dict[int, Any] = {}

    def __enter__(self) -> None:
        import signal
        import threading

        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._kept[number] = signal.signal(number, self._heard)

    def __exit__(self, *_: object) -> None:
        import signal

        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def _heard(self, number: int, _frame: object) -> None:
        import signal

        name = signal.Signals(number).name
        self._runner.stop(f"by {name}", at_once=bool(self._runner.stopping))


__all__ = ["IDLE_PAUSE", "PAUSE", "SILENCE", "Result", "Runner", "run"]
