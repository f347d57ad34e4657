"""Whom to give what: asks the queue and the seats, and lets the plan be made by a pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain import machine, schedule
from gittasks.domain.pool import agent_name
from gittasks.runner.hiring import Hope, hire
from gittasks.workspaces import runs

if TYPE_CHECKING:
    from gittasks.domain.task import Task
    from gittasks.runner.crew import Crew
    from gittasks.runner.seat import Seat
    from gittasks.runner.team import Team

LOOK_AGAIN = 2.0
"""How many seconds pass at most between two looks at the queue while a seat is free."""

_HEADS = 200
"""How many heads of the queue are looked at beside one for each seat."""


class Dispatcher:
    """Seats agents, first things first."""

    def __init__(self, runner: Team, crew: Crew, most: int | None) -> None:
        """Begins with a look that is due; at most so many tasks are given away."""
        self._runner = runner
        self._crew = crew
        self._left = most
        self.is_due = True
        """Something has changed that may let something be given to somebody."""
        self._looked_at = 0.0
        self._rows: list[schedule.Row] = []
        self._holders: dict[str, str] = {}
        self.queue: list[dict[str, object]] = []
        """The rows of the queue as the views show them."""

    def tick(self) -> None:
        """Gives tasks to free seats where it is time to look."""
        runner = self._runner
        if not self.is_due and runner.now - self._looked_at < LOOK_AGAIN:
            return
        self.is_due = False
        self._looked_at = runner.now
        for seat, hope in self.planned():
            if self._left == 0:
                return
            self._holders[hope.task.id] = agent_name(seat.entry)
            if hire(runner, seat, hope):
                self.is_due = True
                self._left = None if self._left is None else self._left - 1

    def planned(self) -> list[tuple[Seat, Hope]]:
        """Returns who would get what now."""
        runner = self._runner
        tasks = self._ready()
        sessions = {id: one for id, task in tasks.items() if (one := self._session(task))}
        self._rows = [
            schedule.Row(
                task.id,
                machine.STAGE[task.state].role or "",
                machine.has_started(task),
                task.assignee,
            )
            for task in tasks.values()
        ]
        # What can go on where it was stopped comes first; the rest is in the order of the queue.
        self._rows.sort(key=lambda row: row.task not in sessions)
        self.queue = [
            {"task": row.task, "state": tasks[row.task].state, "role": row.role}
            for row in self._rows
        ]
        plan = schedule.plan(
            self._rows,
            [self._facts(seat) for seat in runner.seats],
            [
                schedule.AgentFacts(agent_name(entry), self._crew.rate(agent_name(entry)))
                for entry in runner.pool.agents
            ],
            affinity=self._holders,
            resumes={id: session.agent for id, session in sessions.items()},
        )
        seats = {seat.name: seat for seat in runner.seats}
        return [
            (seats[slot], Hope(tasks[id], self._own(seats[slot], sessions.get(id))))
            for id, slot in plan
        ]

    def may_go_on(self) -> bool:
        """Tells whether something that cannot be given now may be given in a while."""
        runner = self._runner
        if self.is_due or runner.has_avoided:
            return True
        # What rested a moment ago is free by now, and was not looked at since.
        facts = [
            one
            for seat in runner.seats
            if seat.is_free and ((one := self._facts(seat)).is_free or self._crew.is_resting(seat))
        ]
        rows = [row for row in self._rows if not runner.is_avoided(row.task)]
        return any(schedule.suits(row, one) for row in rows for one in facts)

    def why_idle(self, seat: Seat) -> str:
        """Returns why a seat is empty although somebody could sit there."""
        return schedule.why_idle(self._facts(seat), self._rows)

    def why_over(self) -> str:
        """Returns why nothing more is given away: all is done, or what stands in the way of more."""
        if self.is_full:
            return "as many tasks were given away as may be"
        if not self._rows:
            return "the work is done"
        facts = [self._facts(seat) for seat in self._runner.seats]
        for row in self._rows:
            # Where several seats rest, the first one is told of.
            why = next((one.why for one in facts if one.why and schedule.suits(row, one)), None)
            if why is not None:
                return f"nobody can take {row.task} now: {why}"
        row = self._rows[0]
        return f"nobody here takes {row.task}, which waits for {row.assignee or f'a {row.role}'}"

    @property
    def is_full(self) -> bool:
        """Tells whether as many tasks were given away as may be."""
        return self._left == 0

    def _facts(self, seat: Seat) -> schedule.SlotFacts:
        why = self._crew.why_not(seat) if seat.state == "IDLE" else None
        return schedule.SlotFacts(
            seat.name,
            agent_name(seat.entry),
            seat.entry.roles,
            is_free=seat.is_free and why is None,
            is_busy=seat.state != "IDLE",
            why="" if why is None else why[1],
        )

    def _ready(self) -> dict[str, Task]:
        """Returns what agents could take, first to last, without what we should leave alone."""
        runner = self._runner
        ledger = runner.project.ledger
        most = _HEADS + len(runner.seats)
        ids = [row.id for row in ledger.ready(None, most, None)]
        left = runs.all(runner.project.state_dir)
        leaving = {run.task for run in left if runs.is_looked_after(run)}
        return {
            task.id: task
            for task in ledger.snapshot.tasks(ids)
            if machine.STAGE[task.state].role in _ROLES
            and task.claim is None
            and task.id not in leaving
            and not runner.is_avoided(task.id)
        }

    def _session(self, task: Task) -> runs.Session | None:
        """Returns the session that can go on with a task whose checks have failed."""
        if task.state != "WORK" or not task.check_failures:
            return None
        session = runs.session_of(self._runner.project.state_dir, task.uid)
        if session is None or session.tip != task.submitted_tip:
            return None
        known = any(agent_name(entry) == session.agent for entry in self._runner.pool.agents)
        return session if known else None

    def _own(self, seat: Seat, session: runs.Session | None) -> runs.Session | None:
        return session if session and session.agent == agent_name(seat.entry) else None


_ROLES = ("designer", "planner", "worker", "reviewer")
