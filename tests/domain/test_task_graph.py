"""The graph in memory, the overlay of a decision, and how one event changes one task."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.domain.errors import Corrupt
from gittasks.domain.events import (
    Change,
    Configured,
    Created,
    Edited,
    Event,
    ExternallyChanged,
    Initialized,
    Noted,
)
from gittasks.domain.ids import LAST_ID
from gittasks.domain.task import Task
from gittasks.domain.task_graph import (
    Graph,
    Overlay,
    TaskGraph,
    evolve,
    free_ids,
    next_id,
    with_findings,
)
from gittasks.domain.times import timestamp
from tests.support.builders import NOW, hexadecimal
from tests.support.decisions import BODY, HOST, a_graph, task_at
from tests.support.examples import examples

ONE, TWO, THREE, FOUR = (f"{number:06d}" for number in range(1, 5))
UID = hexadecimal("new")


def _event(change: Change, body: bytes | None = None) -> Event:
    return Event("e" * 32, NOW, "ada", "manager", HOST, change, ONE, UID, None, "NEW", body=body)


def _tasks() -> tuple[Task, ...]:
    return (
        task_at("NEW"),
        task_at("NEW", 2, parent=ONE, depends_on=(ONE,)),
        task_at("NEW", 3, parent=ONE, depends_on=(ONE, TWO), supersedes=FOUR),
        task_at("CLOSED", 4, outcome="aborted"),
    )


def _overlaid() -> Overlay:
    """Returns the same graph, half of it laid over the other half and one task replaced."""
    first, second, third, fourth = _tasks()
    below = a_graph(first, second, third._replace(parent=None, depends_on=(FOUR,), supersedes=ONE))
    overlay = Overlay(below)
    overlay.put(third, None)
    overlay.put(fourth, BODY)
    return overlay


GRAPHS: list[Graph] = [a_graph(*_tasks()), _overlaid()]


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_graph_answers_what_a_decision_asks(graph: Graph) -> None:
    found = {
        "dependents": [graph.dependents(task) for task in (ONE, TWO, THREE, "000009")],
        "children": [graph.children(task) for task in (ONE, TWO, None, "000009")],
        "superseders": [graph.superseders(task) for task in (ONE, FOUR)],
        "last": graph.last_id(),
        "uid": [graph.with_uid(hexadecimal(f"uid {n}")) for n in (1, 3, 9)],
        "none": graph.get("000009"),
        "all": [graph.get(task) for task in (ONE, TWO, THREE, FOUR)],
        "bodies": [graph.body(task) for task in (ONE, THREE, FOUR)],
    }
    assert found == {
        "dependents": [[TWO, THREE], [THREE], [], []],
        "children": [[TWO, THREE], [], [ONE, FOUR], []],
        "superseders": [[], [THREE]],
        "last": 4,
        "uid": [ONE, THREE, None],
        "none": None,
        "all": list(_tasks()),
        "bodies": [BODY, BODY, BODY],
    }


def test_an_empty_graph_begins_with_one() -> None:
    assert (TaskGraph().last_id(), next_id(TaskGraph())) == (0, ONE)


def _spelled(numbers: Iterable[int]) -> list[str]:
    return [f"{number:06d}" for number in numbers]


NUMBERS = st.sets(st.integers(1, 9) | st.integers(LAST_ID - 4, LAST_ID), max_size=10)


@examples(200)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_new_ids_count_on_while_they_can_and_then_fill_what_never_meant_anything(
    below: set[int], above: set[int], former: set[int]
) -> None:
    first, *_ = ordered = [*sorted(below), 10]
    tasks = [task_at("NEW", number) for number in ordered]
    tasks[0] = task_at("NEW", first, former_ids=tuple(_spelled(sorted(former))))
    overlay = Overlay(a_graph(*tasks))
    for number in above:
        overlay.put(task_at("NEW", number), None)
    used = {*ordered, *above}
    wanted = []
    for _ in range(12):
        is_room = max(used) < LAST_ID
        free = (n for n in range(1, LAST_ID) if n not in used | former)
        wanted.append(max(used) + 1 if is_room else next(free))
        used.add(wanted[-1])
    assert list(islice(free_ids(overlay), 12)) == _spelled(wanted)
    given_out = []
    for _ in range(12):
        given_out.append(next_id(overlay))
        overlay.put(task_at("NEW", int(given_out[-1])), None)
    assert given_out == _spelled(wanted)


class _Counted(TaskGraph):
    looks = 0

    def free_id(self, first: int) -> int:
        self.looks += 1
        return super().free_id(first)


def test_only_where_the_highest_id_is_taken_is_a_free_one_looked_for() -> None:
    graph = _Counted({ONE: task_at("NEW"), "999997": task_at("NEW", 999_997)})
    found = [(next_id_of, graph.looks) for next_id_of in islice(free_ids(graph), 3)]
    assert found == [("999998", 0), ("999999", 0), (TWO, 1)]


def test_documents_in_memory_have_no_blob() -> None:
    assert (a_graph(*_tasks()).revision(ONE), _overlaid().revision(ONE)) == (None, None)


class _Stored(TaskGraph):
    def revision(self, task: str) -> str | None:
        return "b" * 40 if task in self.tasks else None


def test_a_task_that_a_decision_has_changed_has_no_blob_yet() -> None:
    overlay = Overlay(_Stored({ONE: task_at("NEW"), TWO: task_at("NEW", 2)}))
    overlay.put(task_at("DESIGN", 2), None)
    assert [overlay.revision(task) for task in (ONE, TWO, THREE)] == ["b" * 40, None, None]


def test_a_graph_is_a_value() -> None:
    graph = a_graph(*_tasks())
    changed = graph.with_task(task_at("DESIGN"), b"")
    assert graph == a_graph(*_tasks())
    assert changed != graph
    assert graph != "graph"


# Events that cannot be carried out at all.


def test_a_task_is_created_once() -> None:
    for change in (Created("x"), ExternallyChanged(created=True)):
        with pytest.raises(Corrupt, match="000001 is created twice"):
            evolve(task_at("NEW"), BODY, _event(change))


def test_an_event_wants_its_task() -> None:
    with pytest.raises(Corrupt, match="a task that does not exist"):
        evolve(None, b"", _event(Noted()))


@pytest.mark.parametrize("change", [Initialized(), Configured()])
def test_an_event_of_the_project_changes_no_task(change: Change) -> None:
    with pytest.raises(Corrupt, match="changes no task"):
        evolve(task_at("NEW"), BODY, _event(change))


# Changes by hand.


def test_a_document_made_by_hand_becomes_a_new_task() -> None:
    change = ExternallyChanged(
        (("title", "By hand"), ("labels", ("a",)), ("x-a", " 1")), created=True
    )
    task, body = evolve(None, b"", _event(change, b"Text.\n"))
    assert body == b"Text.\n"
    assert task == Task(
        ONE, UID, "By hand", entered_at=timestamp(NOW), labels=("a",), created_at=timestamp(NOW),
        created_by="ada", extra=(("x-a", " 1"),),
    )  # fmt: skip


def test_a_document_made_by_hand_may_be_without_a_text() -> None:
    event = _event(ExternallyChanged((("title", "By hand"),), created=True))
    assert evolve(None, b"", event)[1] == b""


@pytest.mark.parametrize("kind", [Edited, ExternallyChanged])
def test_fields_and_text_are_changed_and_the_rest_stays(
    kind: type[Edited] | type[ExternallyChanged],
) -> None:
    task = task_at("NEW", labels=("a",), extra=(("x-a", " 1"), ("x-b", " 2")))
    change = kind((("title", "New"), ("x-b", " 3")), ("labels", "x-a"), body=True)
    assert evolve(task, BODY, _event(change, b"New.\n")) == (
        task._replace(title="New", labels=(), extra=(("x-b", " 3"),)),
        b"New.\n",
    )


def test_a_text_that_was_not_read_leaves_the_present_one() -> None:
    assert evolve(task_at("NEW"), BODY, _event(Edited(body=True)))[1] == BODY


def test_a_create_without_a_text_has_an_empty_one() -> None:
    assert evolve(None, b"", _event(Created("x")))[1] == b""


# Findings in the text.


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", b"# Review findings\n\n- No.\n"),
        (b"Do it.", b"Do it.\n\n# Review findings\n\n- No.\n"),
        (b"Do it.\n", b"Do it.\n\n# Review findings\n\n- No.\n"),
        (b"Do it.\n\n\n", b"Do it.\n\n\n# Review findings\n\n- No.\n"),
    ],
)
def test_findings_stand_below_the_text(body: bytes, text: bytes) -> None:
    assert with_findings(body, ("No.",)) == text


def test_a_finding_of_several_lines_stays_one_bullet() -> None:
    assert with_findings(b"", ("\nOne\ntwo\n", "- three")) == (
        b"# Review findings\n\n- One\n  two\n- - three\n"
    )
