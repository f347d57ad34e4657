"""What can be asked of the projections, each answer worked out by hand."""

from __future__ import annotations

import pytest

from gittasks.domain.events import Configured, Edited
from gittasks.domain.projections import table
from gittasks.domain.projections.difference import difference
from gittasks.domain.projections.persistent import Persistent
from gittasks.domain.projections.statistics import statistics
from gittasks.domain.projections.table import Fact, World
from gittasks.domain.projections.working_state import waiting_on
from gittasks.domain.requests import Abort, Create, Edit, Reorder, Reparent, Submit
from gittasks.domain.task_graph import Graph
from tests.support.builders import hexadecimal
from tests.support.decisions import Story


def _facts(story: Story) -> list[Fact]:
    return [
        Fact(hexadecimal(f"commit {n}", 40), one.at, one) for n, one in enumerate(story.past, 1)
    ]


def _world(story: Story, until: int | None = None) -> World:
    return table.resume(World(), _facts(story)[:until])


def _signals(story: Story) -> list[tuple[str, str | None, dict[str, object]]]:
    last = story.past[-1]
    before = _world(story, len(story.past) - 1)
    _, signals = table.fold(before, Fact("f" * 40, last.at, last))
    return [(one.name, one.task, dict(one.data)) for one in signals]


@pytest.fixture
def story() -> Story:
    story = Story()
    for number in range(1, 5):
        story.creates(number)
    return story


@pytest.mark.parametrize(
    ("counts", "who"),
    [
        ({"running": 1, "waiting": 3}, "agent"),
        ({"ready": 1, "checking": 1}, "agent"),
        ({"checking": 1, "waiting": 1}, "checker"),
        ({"waiting": 1, "blocked": 1}, "manager"),
        ({"blocked": 1}, "dependency"),
        ({}, "none"),
    ],
)
def test_who_has_the_next_move(counts: dict[str, int], who: str) -> None:
    nothing = {"running": 0, "ready": 0, "checking": 0, "waiting": 0, "blocked": 0}
    assert waiting_on(**{**nothing, **counts}) == who


def test_a_folded_graph_answers_what_decisions_ask(story: Story) -> None:
    graph: Graph = _world(story).graph
    assert (graph.last_id(), graph.free_id(1), graph.free_id(9)) == (4, 5, 9)
    assert (graph.body("000001"), graph.revision("000001")) == (b"", None)


def test_why_a_task_cannot_close(story: Story) -> None:
    story.says(Edit("000002", add_dependencies=("000001",)))
    story.goes_to("MANAGER_REVIEW", 3)
    story.says(Abort("000004"))
    graph = _world(story).graph
    assert graph.can_close("000002") == (
        "It needs 000001.",
        "It is at NEW, and closes from MANAGER_REVIEW.",
    )
    assert graph.can_close("000003") == ()
    assert graph.can_close("000004") == ("The task 000004 is closed already.",)


def test_a_parent_whose_children_have_landed_can_close(story: Story) -> None:
    story.says(Reparent("000002", "000001"))
    story.goes_to("CLOSED", 2)
    assert _world(story).graph.can_close("000001") == ()


def test_moves_and_edits_are_told(story: Story) -> None:
    story.says(Reparent("000002", "000001"))
    assert _signals(story) == [("task_reparented", "000002", {"from": None, "to": "000001"})]
    story.says(Reparent("000002", None))
    assert _signals(story) == [("task_reparented", "000002", {"from": "000001", "to": None})]
    story.says(Reorder("000002", "first"))
    assert _signals(story) == [("task_reordered", "000002", {})]
    story.says(Edit("000002", (("title", "New"), ("labels", ("a",))), body=b"Do it.\n\nTwice.\n"))
    assert _signals(story) == [
        ("task_changed", "000002", {"fields": ["title", "labels", "body"]}),
    ]  # fmt: skip
    seen = story.past[-1]._replace(change=Edited(seen=True), body=None)
    assert table.fold(_world(story), Fact("f" * 40, seen.at, seen))[1] == ()
    story.says(Edit("000002", add_dependencies=("000003",)))
    story.says(Edit("000002", remove_dependencies=("000003",)))
    assert list(_world(story).graph.dependents("000003")) == []


def test_proposals_are_open_until_they_are_answered(story: Story) -> None:
    for number in (5, 6, 7):
        story.now += 60
        request = _proposal(number)
        story.says(request, None, "pi")
    assert _world(story).proposals.open() == ("000005", "000006", "000007")
    story.says(Submit("000005", enter="WORK"))
    assert ("proposal_accepted", "000005", {"by": "pi"}) in _signals(story)
    story.says(Abort("000006"))
    assert ("proposal_declined", "000006", {"by": "pi"}) in _signals(story)
    found = _world(story).proposals
    assert found.open() == ("000007",)
    assert [found.tasks.get(f"00000{n}").answer for n in (5, 6)] == ["accepted", "declined"]  # type: ignore[union-attr]  # they are there


def _proposal(number: int) -> Create:
    return Create(f"Task {number}", hexadecimal(f"uid {number}"), b"")


def test_events_about_no_task_change_no_projection(story: Story) -> None:
    before = _world(story)
    change = Configured((("rejection_limit", 3),))
    event = story.past[-1]._replace(change=change, task=None, uid=None, source=None, target=None)
    story.past.append(event)
    after = _world(story)
    assert after[:-3] == before[:-3]
    assert after.commits == before.commits + 1


def test_numbers_since_a_commit_leave_out_who_has_not_moved(story: Story) -> None:
    story.goes_to("CLOSED", 1)
    story.goes_to("CLOSED", 2)
    half = _world(story)
    story.goes_to("CLOSED", 3)
    found = statistics(table.resume(half, _facts(story)[half.commits :]), story.now, half)
    alone = statistics(half, story.now)
    assert (found.done.landed, alone.done.landed) == (1, 2)


def test_a_map_gives_back_what_was_put_in_and_shares_the_rest() -> None:
    empty: Persistent[int] = Persistent()
    one = empty.with_("000001", 1)
    two = one.with_("000102", 2)
    assert (len(empty), len(one), len(two)) == (0, 1, 2)
    assert two.without("000102") == one
    assert two.without("000001").without("000102") == empty
    assert one.without("000009") is one
    assert "000001" in one
    assert 1 not in one
    assert one != {"000001": 1}
    assert list(two) == ["000001", "000102"]
    assert list(two.changed_since(one)) == ["000102"]
    assert list(one.changed_since(two)) == ["000102"]
    assert list(two.with_("000001", 3).changed_since(two)) == ["000001"]
    far = two.with_("990001", 9)
    assert list(far.with_("990001", 8).changed_since(far)) == ["990001"]


def test_working_children_are_counted_below_those_who_have_some(story: Story) -> None:
    story.says(Reparent("000002", "000001"))
    for number in (2, 3):
        story.says(Submit(f"{number:06d}", enter="WORK"))
        story.claims(number)
    world = _world(story)
    assert world.working.worker_count == 2
    assert world.working.by_parent(world.graph) == {"000001": 1}


def test_going_back_makes_tasks_go(story: Story) -> None:
    half, whole = _world(story, 2), _world(story)
    back = difference(whole, half)
    assert (back.created, back.gone, back.changed) == ((), ("000003", "000004"), {})
    assert difference(half, whole).created == ("000003", "000004")
