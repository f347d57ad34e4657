"""Who is given what, and when: decisions about slots, from facts and without a clock.

`plan` pairs the queue with the free slots. What has begun goes on where it began if that is free;
everything else goes to the fastest agent, those that were never measured first, so that they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gittasks.domain.pool import Agent, Budget, Hours

LOADING = 5.0
"""How many seconds a model that is being loaded is waited for; that counts as no failure."""
LONGEST_BACK_OFF = 64.0
"""The longest pause after failures, in seconds."""


class Row(NamedTuple):
    """One place in the queue: a task and the role that owns its state."""

    task: str
    role: str
    is_started: bool = False
    """Somebody has had the task before."""
    assignee: str | None = None
    """The only slot or agent that may have it; a person's name is nobody's here."""


class SlotFacts(NamedTuple):
    """One slot, as it is now."""

    slot: str
    agent: str
    roles: Collection[str]
    is_free: bool = True
    is_busy: bool = False
    """It is at work and will be free again by itself."""
    why: str = ""
    """Why it is given nothing, where that has nothing to do with the queue."""


class AgentFacts(NamedTuple):
    """One agent: how many tokens it writes in a second, None before it was measured."""

    agent: str
    rate: float | None = None


class Sum(NamedTuple):
    """What was spent: dollars, tokens, seconds."""

    cost: float = 0.0
    tokens: int = 0
    seconds: int = 0


def is_on(schedule: Sequence[Hours], minute_of_day: int) -> bool:
    """Tells whether an agent may be given something at a minute of the local day."""
    return not schedule or any(
        start <= minute_of_day < end
        if start < end
        else minute_of_day >= start or minute_of_day < end
        for start, end in schedule
    )


def suits(row: Row, slot: SlotFacts) -> bool:
    """Tells whether a slot could ever be given a task."""
    return row.role in slot.roles and row.assignee in (None, slot.slot, slot.agent)


def plan(
    rows: Sequence[Row],
    slots: Sequence[SlotFacts],
    agents: Sequence[AgentFacts] = (),
    *,
    affinity: Mapping[str, str] = {},
    resumes: Mapping[str, str] = {},
) -> list[tuple[str, str]]:
    """Returns which task is given to which slot, in the order of the queue.

    Rows, slots and agents come in their own order: the queue's, and that of the pool file.
    `affinity` names the agent that had a started task before, `resumes` the agent whose session
    can go on with one. That agent is waited for while it is at work, unless the task heads the
    queue.
    """
    left = [slot for slot in _by_speed(slots, agents) if slot.is_free]
    planned: dict[str, str] = {}
    is_head = True
    for row in rows:
        if not left:
            break
        # What nobody here could ever take heads nothing.
        if row.task in planned or not any(suits(row, slot) for slot in slots):
            continue
        own = resumes.get(row.task) or (affinity.get(row.task) if row.is_started else None)
        fitting = [slot for slot in left if suits(row, slot)]
        chosen = next((slot for slot in fitting if slot.agent == own), None)
        if chosen is None and (is_head or not _waits(row, resumes, slots)):
            chosen = next(iter(fitting), None)
        is_head = False
        if chosen is not None:
            planned[row.task] = chosen.slot
            left.remove(chosen)
    return list(planned.items())


def _by_speed(slots: Sequence[SlotFacts], agents: Sequence[AgentFacts]) -> list[SlotFacts]:
    """Returns the slots, those of the fastest agent first."""
    rates = {one.agent: one.rate for one in agents}
    places = {one.agent: at for at, one in enumerate(agents)}

    def key(slot: SlotFacts) -> tuple[bool, float, int]:
        rate = rates.get(slot.agent)
        return rate is not None, -(rate or 0.0), places.get(slot.agent, len(places))

    return sorted(slots, key=key)


def _waits(row: Row, resumes: Mapping[str, str], slots: Sequence[SlotFacts]) -> bool:
    """Tells whether the agent that can go on with a task will be free again by itself."""
    own = resumes.get(row.task)
    return any(slot.is_busy and slot.agent == own and suits(row, slot) for slot in slots)


def why_idle(slot: SlotFacts, rows: Sequence[Row]) -> str:
    """Returns why a slot is idle, when all that could be given away was given."""
    if slot.why:
        return slot.why
    if not rows:
        return "no task is ready"
    if any(suits(row, slot) for row in rows):
        return "another agent is waited for"
    roles = list(dict.fromkeys(slot.roles))
    named = f"{', '.join(roles[:-1])} or {roles[-1]}" if len(roles) > 1 else roles[0]
    return f"waiting for a {named} task"


def resize(
    idle: Collection[int], busy: Collection[int], count: int, maximum: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the numbers of the slots to add and to drop until there are so many.

    Growing fills gaps. Shrinking drops idle slots, the highest first; who is at work finishes.
    There is always one, and never more than the maximum.
    """
    wanted = max(1, count if maximum is None else min(count, maximum))
    used = {*idle, *busy}
    free = (number for number in range(1, wanted + len(used) + 1) if number not in used)
    adding = tuple(number for number, _ in zip(free, range(wanted - len(used)), strict=False))
    dropped = sorted(idle, reverse=True)[: max(0, len(used) - wanted)]
    return adding, tuple(dropped)


def back_off(attempt: int) -> float:
    """Returns how many seconds to wait after so many failures in a row: 1, 2, 4 … 64."""
    return min(LONGEST_BACK_OFF, 2.0 ** (min(max(attempt, 1), 7) - 1))


def is_loading(error: str) -> bool:
    """Tells whether a provider only says that its model is not loaded yet."""
    return "503" in error and "loading" in error.lower()


def cost_of(agent: Agent, seconds: float, priced: float) -> float:
    """Returns dollars: what the provider asks for, else what the electricity costs."""
    if priced:
        return round(priced, 6)
    return round(agent.wattage / 1000 * seconds / 3600 * agent.cost_per_kwh, 6)


def over_budget(budget: Budget, spent: Sum) -> str | None:
    """Returns which limit of a budget was reached, in words; None while there is something left."""
    if budget.cost is not None and spent.cost >= budget.cost:
        return f"the cost has reached {_dollars(spent.cost)} of {_dollars(budget.cost)} dollars"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens} of {budget.tokens} tokens are used"
    if budget.time is not None and spent.seconds >= budget.time:
        return f"{spent.seconds} of {budget.time} seconds are used"
    return None


def _dollars(amount: float) -> str:
    return f"{amount:.6f}".rstrip("0").removesuffix(".")
