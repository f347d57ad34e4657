"""What somebody at another terminal asks of a runner: say something, kill an agent, stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.runner import settling
from gittasks.workflow import pool as pools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gittasks.runner.seat import Seat
    from gittasks.runner.team import Team


class Orders:
    """Takes the orders that are for one of this runner's seats, and answers each once."""

    def __init__(self, runner: Team) -> None:
        """Takes the runner that they are for."""
        self._runner = runner

    def take(self) -> None:
        """Does what was ordered since the last look."""
        runner = self._runner
        for order in pools.take_orders(runner.project, self._is_mine):
            pools.answer(runner.project, order, self._done(order.verb, order.data))

    def _is_mine(self, verb: str, data: Mapping[str, Any]) -> bool:
        if verb == "stop":
            return data.get("runner") in (None, self._runner.id)
        return self._seat(data) is not None

    def _seat(self, data: Mapping[str, Any]) -> Seat | None:
        """Returns the seat that an order names."""
        return next((one for one in self._runner.seats if one.name == data.get("slot")), None)

    def _done(self, verb: str, data: Mapping[str, Any]) -> dict[str, Any]:
        runner = self._runner
        if verb == "stop":
            runner.stop(str(data.get("why") or "by order"), at_once=data.get("at_once") is True)
            return {"done": True, "runner": runner.id}
        seat = self._seat(data)
        assert seat is not None
        if seat.stint is None or not seat.is_working or seat.agent is None:
            return {"done": False, "slot": seat.name, "why": f"Nobody works at {seat.name}."}
        task = seat.stint.run.task
        if data.get("task") not in (None, task):
            return {"done": False, "slot": seat.name, "why": f"{seat.name} works on {task}."}
        if verb == "kill":
            runner.say("killed", slot=seat.name, task=task)
            settling.stop(runner, seat, f"The agent was ended by {data.get('by') or 'order'}.")
            return {"done": True, "slot": seat.name, "task": task}
        if verb == "send":
            if seat.state != "BUSY":
                why = f"{seat.name} hears nothing now: {seat.why}."
                return {"done": False, "slot": seat.name, "task": task, "why": why}
            heard = seat.agent.steer(str(data.get("text", "")))
            why = "" if heard else f"The program of {seat.name} hears nothing during a turn."
            if heard:
                runner.say("sent", slot=seat.name, task=task)
            return {"done": heard, "slot": seat.name, "task": task, "why": why}
        return {"done": False, "why": f"There is no order {verb}."}
