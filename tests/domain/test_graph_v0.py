"""`task_graph_projection_v0`: what is drawn for whom, and what must never be drawn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.events import CheckResult, Event
from gittasks.domain.projections import graph_v0, table
from gittasks.domain.projections.graph_v0 import Options, Source
from gittasks.domain.projections.table import Fact, World
from gittasks.domain.requests import (
    Abort,
    Claim,
    Edit,
    Feedback,
    Note,
    RecordCheck,
    Release,
    Resume,
    Submit,
)
from gittasks.domain.task import State
from tests.support.anybody import STEPS, Dice
from tests.support.anybody import World as Anybody
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import BASE, LANDED, LEASE, Story, branch_of
from tests.support.examples import examples
from tests.support.task_graphs import SECRETS, conforms, leaks

REF = "refs/heads/gittasks"
USUAL = Options()
EVERYTHING = Options(everything=True)
HISTORY = Options(history=True)


def folded(events: Sequence[Event]) -> World:
    facts = (
        Fact(hexadecimal(f"commit {number}", 40), event.at, event)
        for number, event in enumerate(events)
    )
    return table.resume(World(), facts)


def short(story: Story, event: Event) -> str:
    return hexadecimal(f"commit {story.past.index(event)}", 40)[:12]


def source_of(world: World) -> Source:
    return Source(REF, world.oid or "", world.at)


def drawn(
    story: Story | World, task: int | None = 1, options: Options = USUAL, **more: Any
) -> dict[str, Any]:
    world = story if isinstance(story, World) else folded(story.past)
    number = None if task is None else f"{task:06d}"
    graph = graph_v0.build(world, number, source_of(world), options, **more)
    assert graph is not None
    conforms(graph)
    return graph


def nodes(graph: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    """Returns id and state of the nodes of a kind."""
    return [(one["node_id"], one["state"]) for one in graph["nodes"] if one["kind"] == kind]


def node(graph: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = (one for one in graph["nodes"] if one["kind"] == kind)
    return dict(found)


def deliverables(graph: dict[str, Any]) -> list[str]:
    return [one.removeprefix("deliverable:") for one, _ in nodes(graph, "deliverable")]


def edges(graph: dict[str, Any], *relations: str) -> list[tuple[str, str, str]]:
    return [
        (edge["relation"], edge["from_node_id"], edge["to_node_id"])
        for edge in graph["edges"]
        if edge["relation"] in relations
    ]


def between_tasks(graph: dict[str, Any], relation: str) -> set[tuple[str, str]]:
    prefix = "deliverable:"
    return {
        (start.removeprefix(prefix), end.removeprefix(prefix))
        for _, start, end in edges(graph, relation)
        if start.startswith(prefix) and end.startswith(prefix)
    }


def ids(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number:06d}" for number in numbers)


def working(*numbers: int, **fields: Any) -> Story:
    """Tells of tasks at WORK that nobody has claimed."""
    story = Story()
    for number in numbers or (1,):
        story.creates(number, **fields)
        story.says(Submit(f"{number:06d}", enter="WORK"))
    return story


def root_of(*numbers: int) -> Story:
    """Tells of a task that needs tasks which are at WORK."""
    story = Story()
    story.creates(1)
    for number in numbers:
        story.creates(number)
        story.says(Submit(f"{number:06d}", enter="WORK"))
    needs(story, 1, *numbers)
    return story


def needs(story: Story, number: int, *others: int) -> None:
    story.says(Edit(f"{number:06d}", set=(("depends_on", ids(*others)),)))


def sent_back(story: Story, number: int = 1, text: str = "Not yet.") -> Event:
    claim = story.claims(number, "eve")
    return story.says(Feedback(f"{number:06d}", (text,)), "reviewer", "eve", claim)[0]


def checked(story: Story, *results: CheckResult, findings: tuple[str, ...] = ()) -> Event:
    tip = story.task().submitted_tip
    assert tip is not None
    request = RecordCheck("000001", tip, results=results, findings=findings)
    return story.says(request, "checker", "runner")[0]


PASSED = CheckResult("make test", 0, "0" * 64)
FAILED = CheckResult("make lint", 1, "0" * 64)
LATE = CheckResult("make slow", 124, "0" * 64, 60, True)


# The whole object.


def busy() -> Story:
    """Tells of a claimed task with rework behind it, and of five others that wait for the manager."""
    story = working(1)
    for number in range(2, 7):
        story.creates(number)
    story.finishes()
    checked(story, PASSED)
    sent_back(story)
    claim = story.claims()
    story.says(Release("000001", "lunch"), "worker", "bob", claim)
    story.claims(1, "zoe")
    return story


def test_a_busy_project_has_nearly_every_kind_and_relation() -> None:
    graph = drawn(busy())
    kinds = {one["kind"] for one in graph["nodes"]}
    relations = {edge["relation"] for edge in graph["edges"]}
    assert kinds == {
        "deliverable", "gate", "gate_summary", "lease", "validation", "repair", "handoff",
    }  # fmt: skip
    assert relations == {
        "blocks", "depends_on", "validates", "repairs", "audits", "continues", "hands_off_to",
    }  # fmt: skip


def test_two_gates_are_drawn_and_the_rest_is_counted() -> None:
    graph = drawn(busy())
    assert len(nodes(graph, "gate")) == 2
    assert node(graph, "gate_summary") == {
        "node_id": "gate_summary:gittasks",
        "kind": "gate_summary",
        "title": "3 more open gates not expanded",
        "state": "waiting",
        "refs": {"goal_ids": ["gittasks"]},
    }
    limits = {name: n for name, n in graph["limits"].items() if name.startswith("user_gate")}
    assert limits == {
        "user_gate_node_limit": 2,
        "user_gate_open_count": 5,
        "user_gate_truncated_count": 3,
    }


def test_the_envelope_says_where_it_comes_from() -> None:
    story = working()
    graph = drawn(story)
    head = {
        name: value for name, value in graph.items() if name not in ("nodes", "edges", "limits")
    }
    assert head == {
        "schema_version": "task_graph_projection_v0",
        "mode": "read_only",
        "goal_id": "gittasks",
        "generated_at": "2027-01-15T08:01:00Z",
        "derived_from": {
            "source_of_truth": [
                "event_ledger", "active_goal_state", "todos", "gates", "leases", "run_history",
            ],
            "status_item_goal_id": "gittasks",
            "status_item_task_id": "000001",
            "active_state_updated_at": "2027-01-15T08:01:00Z",
            "run_history_window": "compact_latest_runs",
            "ledger_ref": REF,
            "ledger_commit": hexadecimal("commit 1", 40),
            "ledger_event_count": 2,
            "as_of": "2027-01-15T08:01:00Z",
        },
        "truth_contract": {
            "event_ledger_is_source_of_truth": True,
            "projection_is_writable": False,
            "write_api": False,
            "recompute_rule": "Recompute from status, active state, gates, leases, and run history"
            " after each lifecycle event.",
        },
    }  # fmt: skip


def test_the_same_commit_and_options_give_the_same_bytes() -> None:
    story = busy()
    assert json.dumps(drawn(story, options=HISTORY)) == json.dumps(drawn(story, options=HISTORY))


def test_without_a_task_there_is_no_graph() -> None:
    source = Source(REF, "0" * 40, NOW)
    nothing = graph_v0.build(World(), None, source)
    assert (nothing, graph_v0.build(World(), None, source, EVERYTHING)) == (None, None)
    assert graph_v0.build(folded(working().past), "000009", source) is None


def test_nothing_waits_where_all_is_closed() -> None:
    story = working()
    story.goes_to("CLOSED")
    world = folded(story.past)
    assert graph_v0.build(world, None, source_of(world)) is None


# Which task.


def test_what_heads_the_inbox_is_drawn_first() -> None:
    story = working(1, 2)
    story.creates(3)
    story.goes_to("MANAGER_REVIEW", 2)
    assert drawn(story, None)["derived_from"]["status_item_task_id"] == "000002"


def test_where_nothing_waits_the_oldest_claim_is_drawn() -> None:
    story = working(1, 2, 3)
    story.claims(3)
    story.claims(2, "eve")
    assert drawn(story, None)["derived_from"]["status_item_task_id"] == "000003"


def test_where_nobody_works_the_head_of_the_queue_is_drawn() -> None:
    story = working(1)
    story.creates(2, priority=0)
    story.says(Submit("000002", enter="WORK"))
    assert drawn(story, None)["derived_from"]["status_item_task_id"] == "000002"


def test_the_goal_is_the_topmost_task() -> None:
    story = working(1)
    story.creates(2, parent="000001")
    story.creates(3, parent="000002")
    graph = drawn(story, 3)
    assert graph["goal_id"] == "000001"
    assert deliverables(graph) == ["000003", "000002"]


# Around the task.


@pytest.mark.parametrize("count", [0, 4, 8])
@pytest.mark.parametrize("closed", [True, False])
def test_four_predecessors_are_drawn_and_all_are_counted(count: int, closed: bool) -> None:
    story = root_of(*range(2, count + 2))
    needs(story, 1, *range(count + 1, 1, -1))
    for number in range(2, count + 2) if closed else ():
        story.goes_to("CLOSED", number)
    graph = drawn(story)
    shown = min(count, 4)
    assert deliverables(graph) == ["000001", *ids(*range(2, shown + 2))]
    limits = {name: n for name, n in graph["limits"].items() if name.startswith("predecessor")}
    assert limits == {
        "predecessor_node_limit": 4,
        "predecessor_count": count,
        "predecessor_truncated_count": count - shown,
    }


def test_what_a_task_waits_for_comes_before_what_is_done() -> None:
    story = root_of(*range(2, 8))
    for number in range(2, 6):
        story.goes_to("CLOSED", number)
    story.creates(8, depends_on=ids(7))
    needs(story, 1, 2, 3, 4, 5, 8)
    assert deliverables(drawn(story)) == ["000001", "000008", "000007", "000002", "000003"]


def test_a_diamond_has_four_tasks_and_four_edges() -> None:
    story = root_of(2, 3, 4)
    story.holds(2)
    story.holds(3)
    for number in (2, 3):
        needs(story, number, 4)
    needs(story, 1, 2, 3)
    graph = drawn(story)
    assert sorted(deliverables(graph)) == list(ids(1, 2, 3, 4))
    assert between_tasks(graph, "depends_on") == {
        ids(1, 2), ids(1, 3), ids(2, 4), ids(3, 4),
    }  # fmt: skip


def test_a_ring_made_by_hand_is_drawn_with_all_its_edges() -> None:
    story = working(1, 2, 3)
    world = folded(story.past)
    tasks = world.graph.tasks
    for number, needs in ((1, ids(2)), (2, ids(3)), (3, ids(2))):
        task = tasks.get(f"{number:06d}")
        assert task is not None
        tasks = tasks.with_(task.id, task._replace(depends_on=needs))
    graph = drawn(world._replace(graph=world.graph._replace(tasks=tasks)))
    assert deliverables(graph) == ["000001", "000002", "000003"]
    assert between_tasks(graph, "depends_on") == {ids(1, 2), ids(2, 3), ids(3, 2)}


def test_what_waits_for_the_task_is_drawn_too() -> None:
    story = working(1)
    for number in range(2, 8):
        story.creates(number, depends_on=ids(1))
        story.says(Submit(f"{number:06d}", enter="WORK"))
    graph = drawn(story)
    assert deliverables(graph) == list(ids(1, 2, 3, 4, 5))
    assert (graph["limits"]["dependent_count"], graph["limits"]["dependent_truncated_count"]) == (
        6,
        2,
    )


def test_the_whole_project_has_no_limits_and_says_so() -> None:
    story = busy()
    graph = drawn(story, None, EVERYTHING)
    assert deliverables(graph) == list(ids(1, 2, 3, 4, 5, 6))
    assert len(nodes(graph, "gate")) == 5
    assert nodes(graph, "gate_summary") == []
    assert graph["limits"]["unlimited"] is True


def test_all_that_a_task_needs_is_drawn_where_that_is_asked_for() -> None:
    story = root_of(*range(2, 9))
    graph = drawn(story, 1, EVERYTHING)
    assert len(deliverables(graph)) == 8
    assert graph["limits"]["predecessor_truncated_count"] == 0


def test_no_gate_is_drawn_where_none_is_wanted() -> None:
    graph = drawn(busy(), options=Options(gate_limit=0))
    assert nodes(graph, "gate") == []
    assert node(graph, "gate_summary")["title"] == "5 more open gates not expanded"


def test_the_gate_of_the_task_comes_before_those_of_others() -> None:
    story = working(1)
    for number in (2, 3, 4):
        story.creates(number)
    graph = drawn(story, 4, Options(gate_limit=1))
    assert [one["refs"]["todo_ids"] for one in graph["nodes"] if one["kind"] == "gate"] == [
        ["000004"]
    ]


# What stands beside a task.


def at(state: State) -> Story:
    story = Story()
    story.creates(1)
    story.goes_to(state)
    return story


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("NEW", "open"), ("DESIGN", "ready"), ("DESIGN_REVIEW", "ready"), ("PLAN", "ready"),
        ("WORK", "ready"), ("CHECK", "open"), ("WORK_REVIEW", "ready"),
        ("MANAGER_REVIEW", "waiting"), ("CLOSED", "done"),
    ],
)  # fmt: skip
def test_a_task_is_drawn_by_its_state(state: State, shown: str) -> None:
    assert nodes(drawn(at(state)), "deliverable") == [("deliverable:000001", shown)]


def test_a_claimed_task_is_open_and_a_held_one_waits() -> None:
    story = working(1, 2)
    story.claims(1)
    story.holds(2)
    story.creates(3, depends_on=ids(1))
    story.says(Submit("000003", enter="WORK"))
    assert dict(nodes(drawn(story, None, EVERYTHING), "deliverable")) == {
        "deliverable:000001": "open",
        "deliverable:000002": "waiting",
        "deliverable:000003": "blocked",
    }


def test_a_claim_is_drawn_as_a_lease_until_it_ends() -> None:
    story = working()
    claim = story.claims()
    mark = short(story, story.past[-1])
    graph = drawn(story)
    assert node(graph, "lease") == {
        "node_id": f"lease:claim:000001:{mark}",
        "kind": "lease",
        "title": "Claim of bob on 000001",
        "state": "ready",
        "refs": {"lease_ids": [f"claim:000001:{mark}"], "todo_ids": ["000001"]},
        "owner_agent": "bob",
    }
    assert edges(graph, "depends_on") == [
        ("depends_on", "deliverable:000001", f"lease:claim:000001:{mark}")
    ]
    story.says(Release("000001"), "worker", "bob", claim)
    assert nodes(drawn(story), "lease") == []


def test_a_lease_that_ran_out_is_unknown() -> None:
    story = working()
    story.claims()
    world = folded(story.past)
    late = Source(REF, world.oid or "", world.at + LEASE)
    graph = graph_v0.build(world, "000001", late)
    assert graph is not None
    assert [state for _, state in nodes(graph, "lease")] == ["unknown"]


def test_a_check_that_runs_is_open() -> None:
    story = working(1, checks=("make test", "make lint", "make test"))
    story.finishes()
    mark = short(story, story.past[-1])
    graph = drawn(story)
    assert nodes(graph, "validation") == [
        (f"validation:check:{mark}:1", "open"), (f"validation:check:{mark}:2", "open"),
    ]  # fmt: skip
    assert edges(graph, "validates", "blocks") == []


def test_each_check_of_the_last_run_validates_or_blocks() -> None:
    story = working()
    story.finishes()
    run = short(story, checked(story, PASSED, FAILED, LATE, findings=("no",)))
    graph = drawn(story)
    assert nodes(graph, "validation") == [
        (f"validation:check:{run}:1", "done"),
        (f"validation:check:{run}:2", "blocked"),
        (f"validation:check:{run}:3", "blocked"),
    ]
    assert edges(graph, "validates", "blocks") == [
        ("validates", f"validation:check:{run}:1", "deliverable:000001"),
        ("blocks", f"validation:check:{run}:2", "deliverable:000001"),
        ("blocks", f"validation:check:{run}:3", "deliverable:000001"),
    ]


def test_a_run_that_failed_without_a_command_blocks() -> None:
    story = working()
    story.finishes()
    run = short(story, checked(story, findings=("no tree",)))
    assert nodes(drawn(story), "validation") == [(f"validation:check:{run}", "blocked")]


def test_what_was_judged_before_the_last_submit_is_gone() -> None:
    story = working()
    story.finishes()
    checked(story, FAILED, findings=("no",))
    story.finishes()
    run = short(story, checked(story, PASSED))
    assert nodes(drawn(story), "validation") == [(f"validation:check:{run}:1", "done")]


def test_rework_is_a_repair_until_the_stage_is_passed() -> None:
    story = working()
    story.finishes()
    checked(story, PASSED)
    first = short(story, sent_back(story))
    assert nodes(drawn(story), "repair") == [(f"repair:000001:{first}", "open")]
    story.finishes()
    checked(story, PASSED)
    assert nodes(drawn(story), "repair") == [(f"repair:000001:{first}", "open")]
    story.finishes(1, "eve")
    assert nodes(drawn(story), "repair") == []
    assert nodes(drawn(story, options=HISTORY), "repair") == [(f"repair:000001:{first}", "done")]


def test_a_second_rejection_waits_beside_its_gate_and_goes_on_after_it() -> None:
    story = working()
    marks = []
    for _ in range(2):
        story.finishes()
        checked(story, PASSED)
        marks.append(short(story, sent_back(story)))
    held = drawn(story)
    assert nodes(held, "repair") == [(f"repair:000001:{marks[0]}", "waiting")]
    assert nodes(held, "gate") == [(f"gate:gate:000001:HELD_WORK:{marks[1]}", "waiting")]
    assert node(held, "repair")["refs"]["run_ids"] == [f"review:{one}" for one in marks]
    story.says(Resume("000001"))
    resumed = drawn(story)
    assert nodes(resumed, "repair") == [(f"repair:000001:{marks[0]}", "open")]
    assert nodes(resumed, "gate") == []


def test_a_hold_is_a_repair_too() -> None:
    story = working()
    held = short(story, story.holds()[0])
    assert nodes(drawn(story), "repair") == [(f"repair:000001:{held}", "waiting")]
    story.says(Resume("000001"))
    assert nodes(drawn(story), "repair") == [(f"repair:000001:{held}", "open")]
    story.finishes()
    assert nodes(drawn(story), "repair") == []


def test_a_handoff_waits_until_somebody_takes_it() -> None:
    story = working()
    mark = short(story, story.past[-1])
    waiting = node(drawn(story), "handoff")
    story.claims()
    assert waiting == {
        "node_id": f"handoff:000001:{mark}",
        "kind": "handoff",
        "title": "NEW to WORK of 000001",
        "state": "waiting",
        "refs": {"todo_ids": ["000001"]},
        "from_agent": "ada",
        "to_agent": "worker",
    }
    assert node(drawn(story), "handoff") == {**waiting, "state": "done", "to_agent": "bob"}


def test_what_comes_to_the_manager_waits_until_it_is_decided() -> None:
    story = working()
    story.goes_to("MANAGER_REVIEW")
    waiting = node(drawn(story), "handoff")
    assert (waiting["state"], waiting["from_agent"], waiting["to_agent"]) == (
        "waiting",
        "bob",
        "manager",
    )
    story.lands()
    assert node(drawn(story), "handoff")["state"] == "done"


def test_handoffs_and_evidence_of_predecessors_are_drawn() -> None:
    story = root_of(2, 3)
    story.goes_to("CLOSED", 2)
    graph = drawn(story)
    states = {one["refs"]["todo_ids"][0]: one["state"] for one in graph["nodes"]
              if one["kind"] == "handoff"}  # fmt: skip
    assert states == {"000002": "done", "000003": "waiting"}
    assert nodes(graph, "evidence") == [(f"evidence:merge:{LANDED[:12]}", "done")]


def test_an_accepted_section_and_a_landing_are_evidence() -> None:
    story = at("CLOSED")
    graph = drawn(story)
    assert [one["title"] for one in graph["nodes"] if one["kind"] == "evidence"] == [
        "Accepted design of 000001",
        "Accepted plan of 000001",
        "Landing of 000001",
    ]
    assert {end for relation, start, end in edges(graph, "validates")} == {"deliverable:000001"}


def test_two_tasks_that_landed_as_one_commit_have_evidence_each() -> None:
    story = working(1, 2)
    story.goes_to("CLOSED", 1)
    story.goes_to("CLOSED", 2)
    assert len(nodes(drawn(story, None, EVERYTHING), "evidence")) == 2


def test_a_decided_gate_is_history() -> None:
    story = working()
    begun = hexadecimal("commit 0", 40)[:12]
    assert nodes(drawn(story), "gate") == []
    assert nodes(drawn(story, options=HISTORY), "gate") == [
        (f"gate:gate:000001:NEW:{begun}", "done")
    ]


def test_a_successor_and_a_follow_up_point_at_where_they_come_from() -> None:
    story = working(1, 2)
    story.creates(3, supersedes="000001", follows="000002")
    story.says(Abort("000001"))
    graph = drawn(story, 3)
    assert between_tasks(graph, "supersedes") == {ids(3, 1)}
    assert between_tasks(graph, "continues") == {ids(3, 2)}
    assert sorted(deliverables(drawn(story, 1))) == list(ids(1, 3))


def test_who_needs_what_was_aborted_needs_its_successor() -> None:
    story = working(1)
    story.creates(2, depends_on=ids(1))
    story.says(Submit("000002", enter="WORK"))
    story.creates(3, supersedes="000001")
    story.says(Abort("000001"))
    graph = drawn(story, 2)
    assert deliverables(graph) == list(ids(2, 1, 3))
    assert between_tasks(graph, "supersedes") == {ids(3, 1)}
    assert deliverables(drawn(story, 3))[:2] == list(ids(3, 2))


# What must not happen.


def _rejected_gate() -> bool:
    """A verdict that sends work back does not validate it."""
    story = working()
    story.goes_to("MANAGER_REVIEW")
    story.says(Feedback("000001", ("No.",)))
    graph = drawn(story)
    assert any(state == "blocked" for _, state in nodes(graph, "validation"))
    return edges(graph, "validates") == []


def _words() -> bool:
    """Words in texts draw nothing: only events do."""
    words = "do not continue until audited, it supersedes and validates 000002"
    plain, loud = working(), working()
    loud.says(Edit("000001", set=(("title", words),)))
    loud.says(Note("000001", words))
    return edges(drawn(plain), *graph_v0.RELATIONS) == [
        (relation, start.replace(short(loud, loud.past[1]), short(plain, plain.past[1])), end)
        for relation, start, end in edges(drawn(loud), *graph_v0.RELATIONS)
    ]


def _runs() -> bool:
    """Each verdict names the run it comes from, and no other one's."""
    story = at("MANAGER_REVIEW")
    found = [one for one in drawn(story)["nodes"] if one["kind"] in ("validation", "evidence")]
    return all(f"{one['kind']}:{one['refs']['run_ids'][0]}" == one["node_id"] for one in found)


def _held() -> bool:
    """What was put aside is not drawn as done."""
    story = working()
    story.holds()
    return nodes(drawn(story), "deliverable") == [("deliverable:000001", "waiting")]


def _aborted() -> bool:
    """What was thrown away says so, and has no evidence."""
    story = working()
    story.says(Abort("000001", recursive=True))
    graph = drawn(story)
    return node(graph, "deliverable")["outcome"] == "aborted" and nodes(graph, "evidence") == []


def _unreadable() -> bool:
    """A document that does not verify is unknown, not open."""
    graph = drawn(working(), unreadable=("000001",))
    return nodes(graph, "deliverable") == [("deliverable:000001", "unknown")]


def _direction() -> bool:
    """A dependency points from who needs to what is needed, from wherever one looks."""
    story = working(1)
    story.creates(2, depends_on=ids(1))
    wanted = {ids(2, 1)}
    return all(between_tasks(drawn(story, one), "depends_on") == wanted for one in (1, 2))


def _once() -> bool:
    """What waits for the manager is one task and one gate, never two tasks."""
    story = Story()
    story.creates(1)
    graph = drawn(story)
    return [one["kind"] for one in graph["nodes"]] == ["deliverable", "gate"]


def _scope() -> bool:
    """A gate blocks its own task and nothing else."""
    story = working(1)
    story.creates(2, depends_on=ids(1))
    story.creates(3)
    graph = drawn(story, 1, Options(gate_limit=9))
    ends = {start.split(":")[2]: end for _, start, end in edges(graph, "blocks")}
    return ends == {"000002": "deliverable:000002", "000003": "deliverable:000003"}


def _long_names() -> bool:
    """Names and titles that begin alike for long lose no edge."""
    story = root_of(2, 3)
    for task in ids(2, 3):
        story.says(Edit(task, set=(("title", "x" * 300 + task),)))
    return between_tasks(drawn(story), "depends_on") == {ids(1, 2), ids(1, 3)}


def _floating() -> bool:
    """Where nobody works, gates still hang on their tasks."""
    story = Story()
    for number in (1, 2, 3):
        story.creates(number)
    graph = drawn(story, None)
    return {end for _, _, end in edges(graph, "blocks")} == {
        "deliverable:000001",
        "deliverable:000002",
    }


def _urgent() -> bool:
    """The first row of a list does not come before the most urgent one."""
    story = working(1)
    story.creates(2, priority=0)
    story.says(Submit("000002", enter="WORK"))
    return deliverables(drawn(story, None))[0] == "000002"


def _many_gates() -> bool:
    """All gates count, however many stand before or behind them."""
    story = working(1)
    for number in range(2, 42):
        story.creates(number)
    return drawn(story)["limits"]["user_gate_open_count"] == 40  # type: ignore[no-any-return]


def _queued_edges() -> bool:
    """Edges between tasks that are drawn are not lost to the limit."""
    story = Story()
    for number in range(1, 8):
        story.creates(number)
    needs(story, 2, 3, 4, 5, 6)
    needs(story, 1, 2, 3, 4, 5, 7)
    graph = drawn(story)
    return between_tasks(graph, "depends_on") >= {ids(1, 5), ids(2, 3), ids(2, 4), ids(2, 5)}


def _actor() -> bool:
    """Who moved a task last is not forgotten by a later event."""
    story = working()
    story.finishes(1, "bob")
    story.says(Note("000001", "hello"), None, "eve")
    return node(drawn(story), "deliverable")["actor_agent"] == "bob"  # type: ignore[no-any-return]


def _clock() -> bool:
    """The time is that of the ledger, also where nothing was ever run."""
    story = Story()
    story.creates(1)
    return drawn(story)["generated_at"] == "2027-01-15T08:00:00Z"  # type: ignore[no-any-return]


def _packet() -> bool:
    """A gate names the packet with which it is decided, at this commit."""
    story = Story()
    story.creates(1)
    refs = node(drawn(story), "gate")["refs"]
    return refs["review_packet_ids"] == [f"packet:000001:{short(story, story.past[-1])}"]  # type: ignore[no-any-return]


def _lease_is_kept() -> bool:
    """A lease is the one that the ledger knows, with the end that it has there."""
    story = working()
    story.says(
        Claim("000001", hexadecimal("own"), NOW + 180, branch_of(1), BASE, BASE), "worker", "bob"
    )
    world = folded(story.past)
    late = graph_v0.build(world, "000001", Source(REF, world.oid or "", NOW + 181))
    assert late is not None
    return [state for _, state in nodes(drawn(story), "lease") + nodes(late, "lease")] == [
        "ready",
        "unknown",
    ]


ODDITIES = (
    _rejected_gate, _words, _runs, _held, _aborted, _unreadable, _direction, _once, _scope,
    _long_names, _floating, _urgent, _many_gates, _queued_edges, _actor, _clock, _packet,
    _lease_is_kept,
)  # fmt: skip


@pytest.mark.parametrize("holds", ODDITIES, ids=lambda one: one.__doc__)
def test_it_never_goes_wrong_like_this(holds: Callable[[], bool]) -> None:
    assert holds()


# What is not shown.


@pytest.mark.parametrize("what", SECRETS)
def test_a_secret_or_a_path_in_a_title_is_replaced_and_no_node_goes(what: str) -> None:
    story = busy()
    plain = drawn(story, options=HISTORY)
    story.says(Edit("000001", set=(("title", f"Look at {SECRETS[what]} again"),)))
    graph = drawn(story, options=HISTORY)
    assert not leaks(json.dumps(graph), what)
    assert [one["node_id"] for one in graph["nodes"]] == [one["node_id"] for one in plain["nodes"]]
    # The task and its decided gate.
    assert graph["limits"]["redacted_title_count"] == 2


def test_half_a_secret_at_the_end_of_a_long_title_is_not_shown() -> None:
    story = Story()
    story.creates(1)
    story.says(Edit("000001", set=(("title", "x" * 148 + " AKIAIOSFODNN7EXAMPLE"),)))
    assert "AKIA" not in json.dumps(drawn(story))


def test_names_and_commands_are_redacted_too() -> None:
    story = working(1, checks=("curl -H 'token=abcdefghijklmnop' /home/ada/x/y",))
    claim = story.claims(1, "/home/ada/bin/bob")
    claimed = json.dumps(drawn(story))
    story.says(Release("000001"), "worker", "/home/ada/bin/bob", claim)
    story.finishes()
    text = claimed + json.dumps(drawn(story))
    assert "/home" not in text
    assert "abcdefghijklmnop" not in text


# Random projects.


@cache
def _random(seed: int) -> World:
    asked = Anybody(Dice(seed))
    for _ in range(STEPS):
        asked.asks()
    return folded(asked.past)


@examples(25)
@given(st.integers(0, 200), st.data())
def test_the_graph_of_any_project_conforms(seed: int, data: st.DataObject) -> None:
    world = _random(seed)
    task = data.draw(st.none() | st.sampled_from(list(world.graph.tasks)))
    options = Options(
        data.draw(st.integers(0, 3)), data.draw(st.booleans()), data.draw(st.booleans())
    )
    graph = graph_v0.build(world, task, source_of(world), options)
    if graph is None:
        assert task is None
        return
    conforms(graph)
    again = graph_v0.build(world, task, source_of(world), options)
    assert json.dumps(graph) == json.dumps(again)
    if options.everything and task is None:
        assert set(deliverables(graph)) == set(world.graph.tasks)
        gated = {one["refs"]["todo_ids"][0] for one in graph["nodes"]
                 if one["kind"] == "gate" and one["state"] == "waiting"}  # fmt: skip
        assert gated == set(world.inbox.entries)
