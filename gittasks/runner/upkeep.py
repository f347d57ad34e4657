"""What a runner does beside its agents: leases, the remote, views for other terminals, notices."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gittasks.domain.errors import GittasksError
from gittasks.domain.pool import agent_name
from gittasks.plumbing.dialogue import Dialogue
from gittasks.runner import recovery
from gittasks.workflow import leases, queries, watch
from gittasks.workflow import pool as pools
from gittasks.workspaces.places import checkout_of

if TYPE_CHECKING:
    from gittasks.runner.checking import Checker
    from gittasks.runner.crew import Crew
    from gittasks.runner.dispatching import Dispatcher
    from gittasks.runner.seat import Seat
    from gittasks.runner.team import Team

LEASES_EVERY = 30.0
SYNC_EVERY = 30.0
VIEW_EVERY = 1.0
STRAYS_EVERY = 10.0

_KILL = 9
_LAST_SYNC = 20.0


class Upkeep:
    """The duties of a runner that come round again and again."""

    def __init__(self, runner: Team, crew: Crew, checker: Checker, dispatcher: Dispatcher) -> None:
        """Begins with everything due."""
        self._runner = runner
        self._crew = crew
        self._checker = checker
        self._dispatcher = dispatcher
        project = runner.project
        self.has_news = False
        """Events were appended that the remote may not have."""
        self._leased_at = runner.now
        self._synced_at = runner.now
        self._strays_at = runner.now
        self._viewed_at = 0.0
        self._view: dict[str, Any] = {}
        self._syncing: Dialogue | None = None
        self._syncs = project.publishes and project.config.get_bool("gittasks.autoSync", True)
        line = project.config.get("gittasks.notifyCommand")
        self._notify = watch.handler(project, line) if line else None
        self._inbox: set[tuple[str, int]] | None = None
        self._inbox_tip = ""

    def tick(self) -> None:
        """Does what is due."""
        self._renew_leases()
        self._sync()
        self._notice()
        runner = self._runner
        waited = runner.now - self._strays_at
        if waited >= STRAYS_EVERY or (waited >= VIEW_EVERY and recovery.is_anything_left(runner)):
            self._strays_at = runner.now
            recovery.recover(runner)

    def finish(self) -> None:
        """Gives the remote what it does not have yet, for a bounded time."""
        if not self._syncs or not self.has_news:
            return
        import time

        self._synced_at = 0.0
        deadline = time.monotonic() + _LAST_SYNC
        while time.monotonic() < deadline:
            self._sync()
            if self._syncing is None and not self.has_news:
                return
            time.sleep(0.05)

    def leave(self, killed: int) -> None:
        """Takes away what shows that this runner is there; tells how many had to be killed."""
        if self._syncing is not None:
            self._syncing.signal(_KILL)
        pools.drop_view(self._runner.project, self._runner.id, killed=killed)

    def publish(self, *, force: bool = False) -> None:
        """Shows the seats, the checks and the queue to other terminals, where they have changed."""
        runner = self._runner
        if not force and runner.now - self._viewed_at < VIEW_EVERY:
            return
        self._viewed_at = runner.now
        view = {
            "process": runner.process,
            "scheduling": not runner.stopping,
            "why": runner.stopping,
            "sandbox": runner.step,
            "slots": [self._row(seat) for seat in runner.seats],
            "checks": [
                {"task": task, "started_at": one.run.started_at, "log": one.run.log}
                for task, one in self._checker.running.items()
            ],
            "queue": self._dispatcher.queue,
        }
        if view != self._view or force:
            self._view = view
            pools.write_view(runner.project, runner.id, {**view, "at": runner.now})

    def _renew_leases(self) -> None:
        runner = self._runner
        if runner.now - self._leased_at < LEASES_EVERY:
            return
        self._leased_at = runner.now
        stints = [seat.stint.record for seat in runner.seats if seat.stint and seat.is_working]
        stints += [one.record for one in self._checker.running.values()]
        for record in stints:
            task = runner.project.ledger.graph().get(record.task)
            if task is not None and leases.renew_own(runner.project, task, record):
                self.has_news = True

    def _sync(self) -> None:
        """Exchanges events with the remote, in a process beside us."""
        runner = self._runner
        if self._syncing is not None:
            self._syncing.lines()
            code = self._syncing.code()
            if code is None:
                return
            if code:
                runner.say("trouble", error=f"sync: {self._syncing.error_tail()}")
                self.has_news = True
            self._syncing = None
        due = self.has_news or runner.now - self._synced_at >= SYNC_EVERY
        # What failed is not tried again at once.
        if not self._syncs or not due or runner.now - self._synced_at < VIEW_EVERY:
            return
        self._synced_at = runner.now
        self.has_news = False
        project = runner.project
        env = {k: v for k, v in project.environ.items() if not k.startswith("GITTASKS_")}
        cwd = checkout_of(project.repo) or project.repo.common_dir
        log = os.path.join(project.state_dir, "agents", "sync.log")
        argv = (*runner.own_program(), "sync", "-q")
        self._syncing = Dialogue(argv, cwd=cwd, env=env, log=log, takes_input=False)

    def _notice(self) -> None:
        """Runs the user's own command for each row that is new in the inbox."""
        runner = self._runner
        if self._notify is None or self._inbox_tip == runner.project.ledger.tip:
            return
        self._inbox_tip = runner.project.ledger.tip
        rows = queries.inbox(runner.project, None).rows
        now = {(row.task.id, row.rank) for row in rows}
        known, self._inbox = self._inbox, now
        if known is None:
            return
        for row in rows:
            if (row.task.id, row.rank) not in known:
                self._tell_one(row)

    def _tell_one(self, row: Any) -> None:
        assert self._notify is not None
        told = {
            "oid": self._inbox_tip,
            "ordinal": None,
            "event": None,
            "signal": "inbox_added",
            "task": row.task.id,
            "title": row.task.title,
            "state": row.task.state,
            "reason": row.reason,
            "command": row.command,
        }
        try:
            problem = self._notify(told)
        except GittasksError as error:
            problem = error.message
        if problem is not None:
            self._runner.say("trouble", error=problem)

    def _row(self, seat: Seat) -> dict[str, Any]:
        """Returns what other terminals see of a seat."""
        runner = self._runner
        entry = seat.entry
        run = seat.stint.run if seat.stint is not None else None
        state, why = seat.state, seat.why
        if state == "IDLE":
            state, why = self._crew.why_not(seat) or ("IDLE", self._dispatcher.why_idle(seat))
        elif state == "WAITING" and runner.now < runner.provider(entry).limited_until:
            state = "LIMITED"
        own = [one for one in runner.seats if one.entry is entry]
        return {
            "slot": seat.name,
            "agent": agent_name(entry),
            "type": entry.type,
            "provider": entry.provider,
            "model": entry.model,
            "index": seat.number,
            "total": len(own),
            "max": entry.max_slots,
            "enabled": self._crew.is_enabled(entry),
            "state": state,
            "task": None if run is None else run.task,
            "role": None if run is None else run.role,
            "started_at": None if run is None else run.started_at,
            "log": None if run is None else run.log,
            "retry": None if seat.due is None else {"at": seat.due, "attempt": seat.errors},
            "why": why,
            **seat.facts(),
        }
