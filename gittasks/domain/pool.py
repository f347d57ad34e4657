"""The pool: which agents there are on this host, how many of each, and when they may work.

The pool file is JSON, `{"agents": [...], "sandbox": ..., "budget": {...}}`, read strictly: whatever
is wrong with it is told at once, each fault with its field. `docs/pool.md` explains all of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

from gittasks.domain.errors import UsageFault
from gittasks.domain.fields import is_dangerous, is_duration, shown
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

AgentType = Literal["pi", "claude", "codex", "command", "scripted"]
AgentRole = Literal["designer", "planner", "worker", "reviewer"]
SandboxWish = Literal["auto", "require", "off"]

AGENT_TYPES: tuple[AgentType, ...] = get_args(AgentType)
AGENT_ROLES: tuple[AgentRole, ...] = get_args(AgentRole)
SANDBOX_WISHES: tuple[SandboxWish, ...] = get_args(SandboxWish)

FILE_LIMIT = 256 * 1024
"""Pool files with more bytes are refused unread."""
SLOT_LIMIT = 1000
"""The most slots of one agent."""
NAME_LIMIT = 100
"""Longest provider or model; both become part of file names."""

_SHOWN_FAULTS = 50
_NAME_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_NO_ROLES = {
    "manager": "The manager is a person or a person's own agent, and never in the pool.",
    "checker": "The runner itself is the checker.",
}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class PoolFault(UsageFault):
    """A pool file that cannot be used; `file` and `faults` say all that is wrong with it."""

    def __init__(self, file: str, faults: Sequence[str], hint: str | None = None) -> None:
        """Lists every fault on a line of its own."""
        self.file = file
        self.faults = tuple(faults)
        count = "a fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        lines = [f"The pool file {file} has {count}.", *(f"  {f}" for f in self.faults)]
        if len(self.faults) > _SHOWN_FAULTS:
            left = len(self.faults) - _SHOWN_FAULTS
            lines = [*lines[: _SHOWN_FAULTS + 1], f"  {left} more faults are not shown."]
        super().__init__("\n".join(lines), hint or f"Correct the fields named in {file}.")


class Hours(NamedTuple):
    """Hours of a day, in minutes since midnight: from `start` until just before `end`.

    Where the end is the earlier one they go on over midnight.
    """

    start: int
    end: int


class Budget(NamedTuple):
    """What may be spent: dollars, tokens, seconds; None is no limit."""

    cost: float | None = None
    tokens: int | None = None
    time: int | None = None


class Budgets(NamedTuple):
    """What one task and what one day may cost."""

    task: Budget | None = None
    day: Budget | None = None


class Agent(NamedTuple):
    """One entry of the pool: a program with a model, and how it may be used."""

    type: AgentType
    provider: str = ""
    model: str = ""
    command: tuple[str, ...] = ()
    """The argument list; empty means the program's usual name on the PATH."""
    slots: int = 1
    max_slots: int | None = None
    roles: tuple[AgentRole, ...] = AGENT_ROLES
    enabled: bool = True
    schedule: tuple[Hours, ...] = ()
    """When it may be given tasks; empty means always."""
    health_check: bool | tuple[str, ...] = False
    """Whether the program is asked before a task is given, or the argument list that is."""
    wattage: float = 0.0
    cost_per_kwh: float = 0.0
    write: tuple[str, ...] = ()
    """The paths that it may write to beside the task's own folder."""
    budget: Budgets | None = None


class Pool(NamedTuple):
    """All agents, in the order of the file."""

    agents: tuple[Agent, ...] = ()
    sandbox: SandboxWish = "auto"
    budget: Budgets | None = None


def agent_name(agent: Agent) -> str:
    """Returns the name of an agent: type, provider and model, as far as they are given."""
    parts = filter(None, (agent.type, agent.provider, agent.model))
    return "".join(letter if letter in _NAME_LETTERS else "-" for letter in "-".join(parts))


def slot_name(agent: Agent, number: int) -> str:
    """Returns the name of one slot of an agent; the first one is 1."""
    return f"{agent_name(agent)}-{number}"


def seed() -> str:
    """Returns the pool file that a clone begins with: one agent, which is disabled."""
    agent = {"type": "claude", "slots": 1, "roles": list(AGENT_ROLES), "enabled": False}
    return json.dumps({"agents": [agent]}, indent=2) + "\n"


def parse(data: bytes | str, file: str) -> Pool:
    """Returns the pool that a file holds; raises PoolFault with all that is wrong with it."""
    faults = _Faults()
    tree = _tree(data, file)
    pool = _pool(faults, tree)
    if faults.found:
        raise PoolFault(file, faults.found)
    return pool


# From bytes to plain values.


class _Object(dict[str, Any]):
    """An object of JSON that remembers which of its keys were given twice."""

    twice: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        again = (name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        found.twice = tuple(dict.fromkeys(again))
    return found


def _integer(text: str) -> int | float:
    # Python refuses to read numbers of thousands of digits; no field takes one.
    return int(text) if len(text) < 20 else float(text)


def _tree(data: bytes | str, file: str) -> object:
    if len(data) > FILE_LIMIT:
        raise PoolFault(file, [f"It has more than {FILE_LIMIT} bytes."], f"Shorten {file}.")
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except UnicodeDecodeError as error:
        fault = f"It is not UTF-8: the byte at {error.start} is none."
    except json.JSONDecodeError as error:
        fault = f"line {error.lineno}, column {error.colno}: It is not JSON: {error.msg}."
    except RecursionError:
        fault = "It is nested too deeply."
    raise PoolFault(file, [fault], f"Correct {file}.")


# From plain values to the pool. A field that is wrong is told and left out.


class _Faults:
    """Collects what is wrong, each with the field where it stands."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, where: str, sentence: str) -> None:
        """Notes one fault."""
        self.found.append(f"{where}: {sentence}" if where else sentence)


def _pool(faults: _Faults, tree: object) -> Pool:
    found = _fields(faults, "", tree, _POOL_FIELDS)
    if isinstance(tree, _Object) and "agents" not in tree:
        faults.add("agents", "The field is missing; an empty list is fine.")
    return Pool(**found)


def _agents(faults: _Faults, where: str, value: Any) -> tuple[Agent, ...]:
    agents = [
        _agent(faults, f"{where}[{at}]", item)
        for at, item in enumerate(_list(faults, where, value))
    ]
    names: dict[str, int] = {}
    for at, agent in enumerate(agents):
        if agent is None:
            continue
        name = agent_name(agent)
        if name in names:
            sentence = (
                f"It has the same name as {where}[{names[name]}], {name}; give one of them another"
                " provider or model, or make them one agent with more slots."
            )
            faults.add(f"{where}[{at}]", sentence)
        names.setdefault(name, at)
    return tuple(filter(None, agents))


def _agent(faults: _Faults, where: str, value: Any) -> Agent | None:
    """Returns an agent, as far as its fields are right; None where it has no name."""
    found = _fields(faults, where, value, _AGENT_FIELDS)
    if not isinstance(value, _Object):
        return None
    if "type" not in value:
        faults.add(f"{where}.type", f"The field is missing; write one of {_list_of(AGENT_TYPES)}.")
    _require_together(faults, where, found, value)
    if "type" not in found or any(name in value and name not in found for name in _NAMING):
        return None
    return Agent(**found)


_NAMING = ("provider", "model")


def _require_together(
    faults: _Faults, where: str, found: Mapping[str, Any], value: Mapping[str, Any]
) -> None:
    """Tells what fields say against each other; one that is wrong by itself says nothing."""
    slots, most = found.get("slots", 1 if "slots" not in value else 0), found.get("max_slots")
    if most is not None and most < slots:
        faults.add(f"{where}.maxSlots", f"{most} is less than slots, which is {slots}.")
    kind = found.get("type")
    for name in _NAMING:
        if kind == "pi" and found.get(name, value.get(name, "")) == "":
            faults.add(f"{where}.{name}", "The field is missing; pi needs provider and model.")
    if kind == "command" and "command" not in value:
        sentence = 'The field is missing; write the argument list, such as ["my-agent", "--work"].'
        faults.add(f"{where}.command", sentence)
    words = found.get("command", ()) if "command" in found or "command" not in value else ("",)
    if kind == "scripted" and len(words) != 1:
        sentence = 'An agent of this type has the path of its plan here, such as ["plan.json"].'
        faults.add(f"{where}.command", sentence)


def _fields(
    faults: _Faults, where: str, value: object, known: Mapping[str, tuple[str, Any]]
) -> dict[str, Any]:
    """Returns the fields of an object that are right, by their name here."""
    if not isinstance(value, _Object):
        faults.add(where, f"{_told(value)} is no object; write {{…}}.")
        return {}
    dot = f"{where}." if where else ""
    for name in value.twice:
        faults.add(f"{dot}{shown(name)}", "The field is given twice; remove one of them.")
    found: dict[str, Any] = {}
    for name, one in value.items():
        place = f"{dot}{shown(name)}"
        if name not in known:
            faults.add(place, _unknown(name, known, len(faults.found) < _SHOWN_FAULTS))
            continue
        own, read = known[name]
        before = len(faults.found)
        result = read(faults, place, one)
        if len(faults.found) == before:
            found[own] = result
    return found


def _unknown(name: str, known: Mapping[str, object], is_shown: bool) -> str:
    import difflib

    lower = {one.lower(): one for one in known}
    plain = name[:40].lower().replace("_", "").replace("-", "")
    near = difflib.get_close_matches(plain, lower, 1, 0.7) if is_shown else ()
    if near:
        return f"The field is unknown; did you mean {lower[near[0]]}?"
    return f"The field is unknown; the fields are {', '.join(known)}."


def _told(value: object) -> str:
    """Returns a value as a fault names it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{shown(value)}"'
    if isinstance(value, int | float):
        return str(value)
    if not value:
        return "[]" if isinstance(value, list) else "{}"
    return "A list" if isinstance(value, list) else "An object"


def _list_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _list(faults: _Faults, where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        faults.add(where, f"{_told(value)} is no list; write […].")
        return []
    return value


def _word(words: Sequence[str]) -> Callable[[_Faults, str, Any], Any]:
    def read(faults: _Faults, where: str, value: Any) -> Any:
        if value not in words:
            faults.add(where, f"{_told(value)} is none of {_list_of(words)}.")
        return value

    return read


def _bool(faults: _Faults, where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        faults.add(where, f"{_told(value)} is neither true nor false.")
    return value is True


def _name(faults: _Faults, where: str, value: Any) -> str:
    if not isinstance(value, str):
        faults.add(where, f"{_told(value)} is no text.")
        return ""
    if value != value.strip() or value[:1] == "-" or any(map(is_dangerous, value)):
        sentence = "begins with a minus, or holds blanks at an end or control characters."
        faults.add(where, f"{_told(value)} {sentence}")
    if len(value) > NAME_LIMIT:
        faults.add(where, f"{_told(value)} has more than {NAME_LIMIT} letters.")
    return value


def _whole(low: int, high: int) -> Callable[[_Faults, str, Any], int]:
    def read(faults: _Faults, where: str, value: Any) -> int:
        if type(value) is not int:
            faults.add(where, f"{_told(value)} is no whole number.")
            return low
        if value < low:
            faults.add(where, f"{value} is less than {low}.")
        if value > high:
            faults.add(where, f"{value} is more than {high}.")
        return value

    return read


def _number(faults: _Faults, where: str, value: Any) -> float:
    # Neither infinity nor what is no number is left when it is taken from itself.
    if type(value) not in (int, float) or value - value != 0:
        faults.add(where, f"{_told(value)} is no number.")
        return 0.0
    if value < 0:
        faults.add(where, f"{value} is less than 0.")
    return float(value)


def _positive(faults: _Faults, where: str, value: Any) -> float:
    before = len(faults.found)
    number = _number(faults, where, value)
    if number == 0 and len(faults.found) == before:
        faults.add(where, "0 lets nothing be done; leave the field out where there is no limit.")
    return number


def _duration(faults: _Faults, where: str, value: Any) -> int:
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not is_duration(text):
        faults.add(where, f"{_told(value)} is no length of time; write seconds, or one such as 2h.")
        return 1
    return int(text.rstrip("smhd")) * _UNITS.get(text[-1], 1)


def _roles(faults: _Faults, where: str, value: Any) -> tuple[str, ...]:
    roles = _list(faults, where, value)
    if value == []:
        faults.add(where, "An agent without a role is given nothing; leave the field out for all.")
    for at, role in enumerate(roles):
        place = f"{where}[{at}]"
        if isinstance(role, str) and role in _NO_ROLES:
            faults.add(place, f'"{role}" cannot be given to an agent. {_NO_ROLES[role]}')
        elif role not in AGENT_ROLES:
            faults.add(place, f"{_told(role)} is none of {_list_of(AGENT_ROLES)}.")
        elif role in roles[:at]:
            faults.add(place, f'"{role}" is named twice.')
    return tuple(roles)


def _schedule(faults: _Faults, where: str, value: Any) -> tuple[Hours, ...]:
    return tuple(
        _hours(faults, f"{where}[{at}]", item)
        for at, item in enumerate(_list(faults, where, value))
    )


def _hours(faults: _Faults, where: str, value: Any) -> Hours:
    found = _fields(faults, where, value, _HOURS_FIELDS)
    if isinstance(value, _Object):
        for name in _HOURS_FIELDS:
            if name not in value:
                faults.add(f"{where}.{name}", 'The field is missing; write a time such as "08:30".')
    start, end = found.get("start", -1), found.get("end", -2)
    if start == end:
        sentence = "start and end are equal; leave the schedule out for an agent that always works."
        faults.add(where, sentence)
    return Hours(start, end)


def _minute(faults: _Faults, where: str, value: Any) -> int:
    """Returns the minute of the day of a time such as 08:30."""
    if isinstance(value, str) and len(value) == 5 and value.isascii() and value[2] == ":":
        hour, minute = value[:2], value[3:]
        if hour.isdigit() and minute.isdigit() and hour < "24" and minute < "60":
            return int(hour) * 60 + int(minute)
    faults.add(where, f'{_told(value)} is no time between "00:00" and "23:59".')
    return 0


def _health(faults: _Faults, where: str, value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, list):
        return _command(faults, where, value)
    if not isinstance(value, bool):
        faults.add(where, f"{_told(value)} is neither true nor false nor an argument list.")
    return value is True


def _command(faults: _Faults, where: str, value: Any) -> tuple[str, ...]:
    words = _list(faults, where, value)
    if value == [] or (words and words[0] == ""):
        faults.add(where, "It names no program.")
    for at, word in enumerate(words):
        if not isinstance(word, str):
            faults.add(f"{where}[{at}]", f"{_told(word)} is no text.")
        elif any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in word):
            faults.add(f"{where}[{at}]", f"{_told(word)} cannot be given to a program.")
    return tuple(words)


def _paths(faults: _Faults, where: str, value: Any) -> tuple[str, ...]:
    paths = _list(faults, where, value)
    for at, path in enumerate(paths):
        place = f"{where}[{at}]"
        if not isinstance(path, str) or not (path[:1] == "/" or f"{path}/"[:2] == "~/"):
            faults.add(place, f"{_told(path)} is no path that begins with / or ~/.")
        elif ".." in path.split("/") or any(map(is_dangerous, path)):
            faults.add(place, f"{_told(path)} holds .. or control characters.")
        elif not path.strip("/"):
            faults.add(place, '"/" is everything; name the folders that are needed.')
    return tuple(paths)


def _budgets(faults: _Faults, where: str, value: Any) -> Budgets:
    return Budgets(**_limits(faults, where, value, _BUDGETS_FIELDS))


def _budget(faults: _Faults, where: str, value: Any) -> Budget:
    return Budget(**_limits(faults, where, value, _BUDGET_FIELDS))


def _limits(
    faults: _Faults, where: str, value: Any, known: Mapping[str, tuple[str, Any]]
) -> dict[str, Any]:
    found = _fields(faults, where, value, known)
    if value == {}:
        faults.add(where, f"It sets no limit; write {_list_of(tuple(known))}, or leave it out.")
    return found


_HOURS_FIELDS: dict[str, tuple[str, Any]] = {"start": ("start", _minute), "end": ("end", _minute)}
_BUDGET_FIELDS: dict[str, tuple[str, Any]] = {
    "cost": ("cost", _positive),
    "tokens": ("tokens", _whole(1, 10**15)),
    "time": ("time", _duration),
}
_BUDGETS_FIELDS: dict[str, tuple[str, Any]] = {"task": ("task", _budget), "day": ("day", _budget)}
_AGENT_FIELDS: dict[str, tuple[str, Any]] = {
    "type": ("type", _word(AGENT_TYPES)),
    "provider": ("provider", _name),
    "model": ("model", _name),
    "command": ("command", _command),
    "slots": ("slots", _whole(1, SLOT_LIMIT)),
    "maxSlots": ("max_slots", _whole(1, SLOT_LIMIT)),
    "roles": ("roles", _roles),
    "enabled": ("enabled", _bool),
    "schedule": ("schedule", _schedule),
    "healthCheck": ("health_check", _health),
    "wattage": ("wattage", _number),
    "costPerKwh": ("cost_per_kwh", _number),
    "write": ("write", _paths),
    "budget": ("budget", _budgets),
}
"""Each field of an agent, as the file spells it: its name here, and what reads it."""
_POOL_FIELDS: dict[str, tuple[str, Any]] = {
    "agents": ("agents", _agents),
    "sandbox": ("sandbox", _word(SANDBOX_WISHES)),
    "budget": ("budget", _budgets),
}

AGENT_FIELDS: dict[str, object] = {
    name: Agent._field_defaults.get(own) for name, (own, _) in _AGENT_FIELDS.items()
}
"""The fields of an agent with their defaults, as the file spells them."""
POOL_FIELDS: dict[str, object] = {
    name: Pool._field_defaults[own] for name, (own, _) in _POOL_FIELDS.items()
}
"""The fields of the whole file with their defaults."""
