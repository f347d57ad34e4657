"""The seats of a runner: which slots it holds, how many there should be, and why one stays empty."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gittasks.domain import schedule
from gittasks.domain.pool import agent_name, slot_name
from gittasks.plumbing.errors import GitError, LockTimeout
from gittasks.plumbing.locks import FileLock
from gittasks.runner.providers import Health
from gittasks.runner.seat import Seat
from gittasks.workflow import pool as pools

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.domain.pool import Agent
    from gittasks.runner.team import Team

_NO_PATIENCE = 0.0
_CONTROL_EVERY = 0.5
_HEALTH_SECONDS = 5.0


class Crew:
    """All seats of one runner, in the order of the pool file."""

    def __init__(self, runner: Team, pauses: Callable[[Agent], str | None]) -> None:
        """Begins without a seat; `pauses` tells which budget lets an agent rest."""
        self._runner = runner
        self._pauses = pauses
        self.seats: list[Seat] = []
        self.holder = ""
        """Who has the first slot that we could not have, in words."""
        self._control = pools.Control()
        self._control_at = 0.0
        self._health: dict[str, Health] = {}
        self._unreachable: set[str] = set()
        self._rates: dict[str, float] = {}

    def take_seats(self) -> None:
        """Takes as many free slots of every agent as there should be of it."""
        self._control = pools.control(self._runner.project)
        for entry in self._runner.pool.agents:
            self._grow(entry, self._wanted(entry))

    def imagine_seats(self) -> None:
        """Makes the seats of all slots that nobody holds, without holding them.

        Whose health is checked is asked first, since nobody will look a second time.
        """
        living = pools.views(self._runner.project)
        held = {row.get("slot") for view in living for row in pools.rows_of(view)}
        for entry in self._runner.pool.agents:
            for number in range(1, entry.slots + 1):
                name = slot_name(entry, number)
                if name not in held:
                    self.seats.append(Seat(entry, name, number, self._lock(name)))
            self._problem(entry)
        for health in self._health.values():
            health.wait()

    def leave(self) -> None:
        """Lets others have the slots."""
        for seat in self.seats:
            seat.lock.release()

    def adjust(self) -> None:
        """Takes or leaves slots where their number was changed, and notes how fast agents are."""
        if self._runner.now - self._control_at >= _CONTROL_EVERY:
            self._control_at = self._runner.now
            self._control = pools.control(self._runner.project)
        self._hear_of_health()
        control = self._control
        for entry in self._runner.pool.agents:
            name = agent_name(entry)
            wanted = control.slots.get(name, entry.slots)
            own = [seat for seat in self.seats if seat.entry is entry]
            staying = [seat for seat in own if not seat.is_leaving]
            if wanted > len(staying):
                for seat in own:
                    if seat.is_leaving and wanted > len(staying):
                        seat.is_leaving = False
                        staying.append(seat)
                self._grow(entry, wanted)
            elif wanted < len(staying):
                busy = {seat.number for seat in staying if seat.state != "IDLE"}
                idle = {seat.number for seat in staying if seat.state == "IDLE"}
                _, leaving = schedule.resize(idle, busy, wanted, entry.max_slots)
                for seat in staying:
                    if seat.number in leaving:
                        seat.is_leaving = True
            rates = [rate for seat in own if (rate := seat.rate()) is not None]
            if rates:
                self._rates[name] = max(rates)
        for seat in [seat for seat in self.seats if seat.is_leaving and seat.state == "IDLE"]:
            seat.lock.release()
            self.seats.remove(seat)

    def _hear_of_health(self) -> None:
        for health in self._health.values():
            if health.is_new:
                health.is_new = False
                self._runner.wake()

    def rate(self, name: str) -> float | None:
        """Returns how many tokens an agent writes in a second, None before it was measured."""
        return self._rates.get(name)

    def is_enabled(self, entry: Agent) -> bool:
        """Tells whether an agent may be given anything, as it was switched last."""
        return self._control.enabled.get(agent_name(entry), entry.enabled)

    def why_not(self, seat: Seat) -> tuple[str, str] | None:
        """Returns state and reason of a seat that nobody is to be given to, None where one may be."""
        runner, entry = self._runner, seat.entry
        if seat.is_leaving:
            return "DISABLED", "the number of slots was lowered"
        if not self.is_enabled(entry):
            return "DISABLED", "the agent is disabled"
        if not schedule.is_on(entry.schedule, minute_of_day(runner.now)):
            return "OFF_SCHEDULE", "it is outside the agent's hours"
        provider = runner.provider(entry)
        if runner.now < provider.limited_until:
            return "LIMITED", provider.limit_in_words
        if runner.now < provider.due:
            return "WAITING", f"{provider.name} failed {provider.attempts} times"
        paused = self._pauses(entry)
        if paused is not None:
            return "LIMITED", paused
        problem = self._problem(entry)
        return None if problem is None else ("UNREACHABLE", problem)

    def _problem(self, entry: Agent) -> str | None:
        """Returns why the program or the provider of an agent is not there."""
        runner = self._runner
        name = agent_name(entry)
        found = runner.capabilities(entry)
        if not (found.problems or entry.health_check or name in self._unreachable):
            return None
        if name not in self._health:
            self._health[name] = Health(lambda: self._ask(entry))
        health = self._health[name]
        if not health.look(runner.now):
            return found.problems[0] if found.problems else "the provider was not asked yet"
        problem = health.problem
        if (problem is None) == (name in self._unreachable):
            # Told once when it begins and once when it is over, not at every look.
            self._unreachable ^= {name}
            runner.say("reachable" if problem is None else "unreachable", agent=name, why=problem)
        return problem

    def _ask(self, entry: Agent) -> str | None:
        """Asks for an agent's health: its own command, else its program."""
        from gittasks.plumbing import process

        runner = self._runner
        if isinstance(entry.health_check, tuple) and entry.health_check:
            try:
                done = process.run(
                    _found(entry.health_check), env=dict(os.environ), timeout=_HEALTH_SECONDS
                )
            except (OSError, GitError) as error:
                return f"the provider does not answer: {error}"
            words = done.stderr.decode("utf-8", "replace").strip()[:200]
            return (
                None if done.status == 0 else f"the provider does not answer: {words}".rstrip(": ")
            )
        problems = runner.capabilities(entry, again=True).problems
        return problems[0] if problems else None

    def _wanted(self, entry: Agent) -> int:
        return self._control.slots.get(agent_name(entry), entry.slots)

    def _grow(self, entry: Agent, wanted: int) -> None:
        own = {seat.number for seat in self.seats if seat.entry is entry}
        limit = entry.max_slots or max(wanted, entry.slots)
        for number in range(1, limit + 1):
            if len(own) >= wanted:
                return
            if number in own:
                continue
            name = slot_name(entry, number)
            lock = self._lock(name)
            try:
                lock.acquire()
            except LockTimeout as error:
                self.holder = self.holder or f"{name} is held by {error.holder}"
                continue
            own.add(number)
            self.seats.append(Seat(entry, name, number, lock))
        self.seats.sort(key=self._order)

    def _order(self, seat: Seat) -> tuple[int, int]:
        return list(map(id, self._runner.pool.agents)).index(id(seat.entry)), seat.number

    def _lock(self, name: str) -> FileLock:
        path = os.path.join(self._runner.project.state_dir, "slots", f"{name}.flk")
        return FileLock(path, _NO_PATIENCE, f"slot {name}")

    def is_resting(self, seat: Seat) -> bool:
        """Tells whether a seat is empty only for a moment: its provider failed, or answers soon."""
        health = self._health.get(agent_name(seat.entry))
        is_asked = health is not None and (health.is_new or not health.is_known)
        return is_asked or self._runner.provider(seat.entry).due > self._runner.now


def minute_of_day(now: float) -> int:
    """Returns the minute of the local day at a time."""
    local = time.localtime(now)
    return local.tm_hour * 60 + local.tm_min


def _found(command: tuple[str, ...]) -> tuple[str, ...]:
    import shutil

    return (shutil.which(command[0]) or command[0], *command[1:])
