"""What the parts of a runner may ask of it, without knowing how it is put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from gittasks.agents.base import Capabilities
    from gittasks.domain.pool import Agent, Pool
    from gittasks.runner.apart import Apart
    from gittasks.runner.providers import Provider
    from gittasks.runner.seat import Seat, Stint
    from gittasks.runner.wording import Wording
    from gittasks.workflow.project import Project
    from gittasks.workspaces.records import Process
    from gittasks.workspaces.runs import RunRecord


class Team(Protocol):
    """As much of a runner as its parts need."""

    project: Project
    pool: Pool
    id: str
    now: float
    clock: Callable[[], float]
    process: Process | None
    lease: int
    wording: Wording
    apart: Apart
    stopping: str
    unsettled: dict[str, int]
    """How often a run of an earlier runner, by its claim, could not be settled."""

    @property
    def seats(self) -> list[Seat]:
        """Returns the seats of this runner."""
        ...

    @property
    def step(self) -> str:
        """Returns how agents are kept apart: bubblewrap, limits or bare."""
        ...

    def at_work(self) -> set[str]:
        """Returns the claims that somebody here works on, checks included."""
        ...

    def provider(self, entry: Agent) -> Provider:
        """Returns the provider of an entry of the pool."""
        ...

    def capabilities(self, entry: Agent, *, again: bool = False) -> Capabilities:
        """Returns what the program of an entry can do here, as it was when it was asked."""
        ...

    def end(self, seat: Seat, then: Callable[[Stint], None] | None = None) -> None:
        """Ends the agent of a seat; `then` is done when nothing of it is left."""
        ...

    def leave(self, run: RunRecord) -> None:
        """Brings in what an agent that is gone has made, and tells what it should not have done."""
        ...

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """Begins to end: nobody is seated any more, and whoever works gives the task back."""
        ...

    def wake(self) -> None:
        """Notes that something may be given to somebody by now."""
        ...

    def has_written(self) -> None:
        """Notes that events were appended, which the others do not have yet."""
        ...

    def is_behind(self, oid: str) -> bool:
        """Tells whether a former tip of the ledger is part of the present one."""
        ...

    def avoid(self, task_id: str) -> int:
        """Leaves a task alone for a while; returns how often in a row it could not be begun."""
        ...

    def has_begun(self, task_id: str) -> None:
        """Notes that a task could be begun after all."""
        ...

    def is_avoided(self, task_id: str) -> bool:
        """Tells whether a task is left alone now."""
        ...

    @property
    def has_avoided(self) -> bool:
        """Tells whether some task is left alone only for a while."""
        ...

    def own_program(self) -> tuple[str, ...]:
        """Returns the argument list that reaches this very program."""
        ...

    def sweep(self, mark: str) -> int:
        """Kills all that carries the mark of a run; returns how many there were."""
        ...

    def tell(self, event: str, seat: Seat, **facts: Any) -> None:
        """Tells what has happened at a seat, and counts it."""
        ...

    def say(self, event: str, **facts: Any) -> None:
        """Tells whoever watches what has happened."""
        ...
