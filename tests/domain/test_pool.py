"""The pool file: what it may say, and that everything wrong with it is told at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gittasks.domain import pool
from gittasks.domain.pool import Agent, Budget, Budgets, Hours, Pool, PoolFault

FULL = {
    "sandbox": "require",
    "budget": {"day": {"cost": 20, "tokens": 5_000_000, "time": "8h"}},
    "agents": [
        {
            "type": "pi",
            "provider": "local box",
            "model": "qwen/3",
            "slots": 2,
            "maxSlots": 4,
            "roles": ["worker", "reviewer"],
            "enabled": False,
            "schedule": [{"start": "08:30", "end": "12:00"}, {"start": "22:00", "end": "06:00"}],
            "healthCheck": True,
            "wattage": 350.5,
            "costPerKwh": 0.3,
            "write": ["/srv/cache", "~/.npm", "~"],
            "budget": {"task": {"cost": 0.5, "time": 90}, "day": {"tokens": 1000}},
        },
        {"type": "command", "command": ["my-agent", "--work"], "healthCheck": ["true"]},
    ],
}


def faults(data: Any) -> list[str]:
    """Returns what is wrong with a pool; fails if nothing is."""
    text = data if isinstance(data, bytes | str) else json.dumps(data)
    with pytest.raises(PoolFault) as caught:
        pool.parse(text, "agents.json")
    return list(caught.value.faults)


def fault(field: str, value: Any) -> str:
    """Returns the one fault of an agent with such a field, without the place of the agent."""
    (only,) = faults({"agents": [{"type": "claude", field: value}]})
    assert only.startswith("agents[0].")
    return only.removeprefix("agents[0].")


def test_every_field_is_read() -> None:
    first = Agent(
        "pi", "local box", "qwen/3",
        slots=2,
        max_slots=4,
        roles=("worker", "reviewer"),
        enabled=False,
        schedule=(Hours(510, 720), Hours(1320, 360)),
        health_check=True,
        wattage=350.5,
        cost_per_kwh=0.3,
        write=("/srv/cache", "~/.npm", "~"),
        budget=Budgets(task=Budget(cost=0.5, time=90), day=Budget(tokens=1000)),
    )  # fmt: skip
    second = Agent("command", command=("my-agent", "--work"), health_check=("true",))
    whole = Budgets(day=Budget(20.0, 5_000_000, 28_800))
    assert pool.parse(json.dumps(FULL), "f") == Pool((first, second), "require", whole)


def test_what_is_left_out_has_its_default() -> None:
    assert pool.parse('{"agents": [{"type": "codex"}]}', "f").agents == (
        Agent(
            "codex", "", "", (), 1, None, ("designer", "planner", "worker", "reviewer"), True, (),
            False, 0.0, 0.0, (), None,
        ),
    )  # fmt: skip


def test_a_pool_without_agents_loads() -> None:
    assert pool.parse(b'\xef\xbb\xbf{"agents": []}', "f") == Pool((), "auto", None)


def test_the_seeded_file_holds_one_disabled_agent() -> None:
    assert pool.parse(pool.seed(), "f") == Pool((Agent("claude", enabled=False),))


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (Agent("claude"), "claude-3"),
        (Agent("pi", "local box", "qwen/3:größe"), "pi-local-box-qwen-3-gr--e-3"),
        (Agent("command", model="x.y_z"), "command-x.y_z-3"),
    ],
)
def test_a_slot_is_named_after_its_agent(agent: Agent, name: str) -> None:
    assert pool.slot_name(agent, 3) == name


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("type", "gpt", 'type: "gpt" is none of pi, claude, codex, command or scripted.'),
        ("type", None, "type: null is none of pi, claude, codex, command or scripted."),
        ("provider", 3, "provider: 3 is no text."),
        ("provider", "-x", 'provider: "-x" begins with a minus, or holds blanks at an end or control characters.'),
        ("model", " x", 'model: " x" begins with a minus, or holds blanks at an end or control characters.'),
        ("model", "a\x1b", 'model: "a\\u001b" begins with a minus, or holds blanks at an end or control characters.'),
        ("model", "m" * 101, f'model: "{"m" * 60}…" has more than 100 letters.'),
        ("slots", 0, "slots: 0 is less than 1."),
        ("slots", 1001, "slots: 1001 is more than 1000."),
        ("slots", 1.0, "slots: 1.0 is no whole number."),
        ("slots", True, "slots: true is no whole number."),
        ("slots", "2", 'slots: "2" is no whole number.'),
        ("maxSlots", None, "maxSlots: null is no whole number."),
        ("roles", [], "roles: An agent without a role is given nothing; leave the field out for all."),
        ("roles", "worker", 'roles: "worker" is no list; write […].'),
        ("roles", ["worker", "worker"], 'roles[1]: "worker" is named twice.'),
        ("roles", ["tester"], 'roles[0]: "tester" is none of designer, planner, worker or reviewer.'),
        ("roles", [["worker"]], "roles[0]: A list is none of designer, planner, worker or reviewer."),
        ("roles", ["manager"], 'roles[0]: "manager" cannot be given to an agent. The manager is a person or a person\'s own agent, and never in the pool.'),
        ("roles", ["checker"], 'roles[0]: "checker" cannot be given to an agent. The runner itself is the checker.'),
        ("enabled", "false", 'enabled: "false" is neither true nor false.'),
        ("schedule", {}, "schedule: {} is no list; write […]."),
        ("schedule", ["8-12"], 'schedule[0]: "8-12" is no object; write {…}.'),
        ("schedule", [{"start": "08:00"}], 'schedule[0].end: The field is missing; write a time such as "08:30".'),
        ("schedule", [{"start": "08:00", "end": "24:00"}], 'schedule[0].end: "24:00" is no time between "00:00" and "23:59".'),
        ("schedule", [{"start": "8:00", "end": "10:60"}], None),
        ("schedule", [{"start": "08:00", "end": "08:00"}], "schedule[0]: start and end are equal; leave the schedule out for an agent that always works."),
        ("healthCheck", "curl", 'healthCheck: "curl" is neither true nor false nor an argument list.'),
        ("healthCheck", [], "healthCheck: It names no program."),
        ("wattage", -1, "wattage: -1 is less than 0."),
        ("wattage", "1", 'wattage: "1" is no number.'),
        ("costPerKwh", False, "costPerKwh: false is no number."),
        ("write", ["cache"], 'write[0]: "cache" is no path that begins with / or ~/.'),
        ("write", ["~ann/x"], 'write[0]: "~ann/x" is no path that begins with / or ~/.'),
        ("write", [3], "write[0]: 3 is no path that begins with / or ~/."),
        ("write", ["/a/../b"], 'write[0]: "/a/../b" holds .. or control characters.'),
        ("write", ["//"], 'write[0]: "/" is everything; name the folders that are needed.'),
        ("command", "run me", 'command: "run me" is no list; write […].'),
        ("command", ["", "x"], "command: It names no program."),
        ("command", ["x", 1], "command[1]: 1 is no text."),
        ("command", ["x", "\0"], 'command[1]: "\\u0000" cannot be given to a program.'),
        ("budget", {}, "budget: It sets no limit; write task or day, or leave it out."),
        ("budget", 5, "budget: 5 is no object; write {…}."),
        ("budget", {"task": {}}, "budget.task: It sets no limit; write cost, tokens or time, or leave it out."),
        ("budget", {"day": {"cost": 0}}, "budget.day.cost: 0 lets nothing be done; leave the field out where there is no limit."),
        ("budget", {"day": {"cost": -1}}, "budget.day.cost: -1 is less than 0."),
        ("budget", {"day": {"tokens": 0}}, "budget.day.tokens: 0 is less than 1."),
        ("budget", {"day": {"time": "2 h"}}, 'budget.day.time: "2 h" is no length of time; write seconds, or one such as 2h.'),
        ("budget", {"day": {"time": 1.5}}, "budget.day.time: 1.5 is no length of time; write seconds, or one such as 2h."),
        ("rolls", 1, "rolls: The field is unknown; did you mean roles?"),
        ("max_slots", 1, "max_slots: The field is unknown; did you mean maxSlots?"),
        ("a\nb", 1, "a\\nb: The field is unknown; the fields are " + ", ".join(pool.AGENT_FIELDS) + "."),
    ],
)  # fmt: skip
def test_a_wrong_field_is_told_with_its_value(field: str, value: Any, told: str | None) -> None:
    if told is None:
        assert len(faults({"agents": [{"type": "claude", field: value}]})) == 2
    else:
        assert fault(field, value) == told


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ({}, ["type: The field is missing; write one of pi, claude, codex, command or scripted."]),
        ({"type": "claude", "slots": 4, "maxSlots": 2}, ["maxSlots: 2 is less than slots, which is 4."]),
        ({"type": "claude", "slots": "x", "maxSlots": 2}, ['slots: "x" is no whole number.']),
        (
            {"type": "pi", "model": 3},
            ["model: 3 is no text.", "provider: The field is missing; pi needs provider and model."],
        ),
        (
            {"type": "command"},
            ['command: The field is missing; write the argument list, such as ["my-agent", "--work"].'],
        ),
        (
            {"type": "scripted", "command": ["a", "b"]},
            ['command: An agent of this type has the path of its plan here, such as ["plan.json"].'],
        ),
        (
            {"type": "scripted"},
            ['command: An agent of this type has the path of its plan here, such as ["plan.json"].'],
        ),
        ({"type": "scripted", "command": []}, ["command: It names no program."]),
    ],
)  # fmt: skip
def test_what_fields_say_against_each_other_is_told(agent: dict[str, Any], told: list[str]) -> None:
    assert faults({"agents": [agent]}) == [f"agents[0].{one}" for one in told]


def test_two_agents_of_one_name_are_refused() -> None:
    agents = [
        {"type": "pi", "provider": "a", "model": "b"},
        {"type": "pi", "provider": "a", "model": 3},
        {"type": "claude"},
        {"type": "pi", "provider": "a", "model": "b", "slots": 2},
        {"type": "codex", "provider": "x/y"},
        {"type": "codex", "provider": "x y"},
    ]
    assert faults({"agents": agents}) == [
        "agents[1].model: 3 is no text.",
        "agents[3]: It has the same name as agents[0], pi-a-b; give one of them another provider or"
        " model, or make them one agent with more slots.",
        "agents[5]: It has the same name as agents[4], codex-x-y; give one of them another provider"
        " or model, or make them one agent with more slots.",
    ]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("[]", "[] is no object; write {…}."),
        ('[{"agents": []}]', "A list is no object; write {…}."),
        ("{}", "agents: The field is missing; an empty list is fine."),
        ('{"agents": {}}', "agents: {} is no list; write […]."),
        ('{"agents": {"a": 1}}', "agents: An object is no list; write […]."),
        ('{"agents": [null]}', "agents[0]: null is no object; write {…}."),
        ('{"agents": [], "sandbox": "on"}', 'sandbox: "on" is none of auto, require or off.'),
        ('{"agents": [], "agent": 1}', "agent: The field is unknown; did you mean agents?"),
        ('{"agents": [], "agents": []}', "agents: The field is given twice; remove one of them."),
        (
            '{"agents": [{"type": "claude", "slots": 1, "slots": 1, "slots": 2}]}',
            "agents[0].slots: The field is given twice; remove one of them.",
        ),
        ('{"agents": [{"type": "claude", "wattage": NaN}]}', "agents[0].wattage: nan is no number."),
        ('{"agents": [{"type": "claude", "wattage": 1e999}]}', "agents[0].wattage: inf is no number."),
        (
            '{"agents": [{"type": "claude", "slots": ' + "9" * 5000 + "}]}",
            "agents[0].slots: inf is no whole number.",
        ),
        ('{"agents": [],}', "line 1, column 15: It is not JSON: Illegal trailing comma before end of object."),
        ("", "line 1, column 1: It is not JSON: Expecting value."),
        (b"\xff{}", "It is not UTF-8: the byte at 0 is none."),
        ("[" * 100_000, "It is nested too deeply."),
        (" " * 262_145, "It has more than 262144 bytes."),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "bytes",
)  # fmt: skip
def test_a_file_that_is_no_pool_is_told(data: str | bytes, told: str) -> None:
    (found,) = faults(data)
    # How Python names a trailing comma depends on its version.
    assert found == told or (",}" in str(data) and found.startswith("line 1, column "))


def test_all_faults_are_told_with_the_file_and_the_way_out() -> None:
    with pytest.raises(PoolFault) as caught:
        pool.parse('{"agents": [{"type": "claude", "slots": 0, "rolls": []}], "x": 1}', "/p/a.json")
    error = caught.value
    assert (error.exit_code, error.file, error.hint, error.message) == (
        2,
        "/p/a.json",
        "Correct the fields named in /p/a.json.",
        "The pool file /p/a.json has 3 faults.\n"
        "  agents[0].slots: 0 is less than 1.\n"
        "  agents[0].rolls: The field is unknown; did you mean roles?\n"
        "  x: The field is unknown; the fields are agents, sandbox, budget.",
    )


def test_a_thousand_faults_are_not_all_printed() -> None:
    with pytest.raises(PoolFault) as caught:
        pool.parse(json.dumps({"agents": [], **{f"agent{n}": 1 for n in range(1000)}}), "f")
    lines = caught.value.message.split("\n")
    assert (len(lines), lines[-1]) == (52, "  950 more faults are not shown.")
    assert len(caught.value.faults) == 1000


def test_the_page_lists_every_field_with_its_default() -> None:
    from pathlib import Path

    page = (Path(__file__).resolve().parents[2] / "docs" / "pool.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    told = {name.strip(): default.strip() for name, default in rows}
    expected = {f"`{name}`": _default(one) for name, one in pool.AGENT_FIELDS.items()}
    expected |= {f"`{name}`": _default(one) for name, one in pool.POOL_FIELDS.items()}
    expected |= {"`type`": "has to be there", "`agents`": "has to be there"}
    assert told == expected


def _default(value: object) -> str:
    """Returns how the page spells a default."""
    if value is None or value in ("", ()):
        return "none"
    if value == pool.AGENT_ROLES:
        return "all four"
    return json.dumps(value).strip('"').removesuffix(".0")
