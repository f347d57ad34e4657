"""Numbers of new tasks where somebody has taken the highest that there is."""

from __future__ import annotations

from gittasks.domain.frontmatter import render
from tests.cases.ground import path_of
from tests.sharing.ground import Clone, Shared
from tests.support.decisions import task_at
from tests.support.remotes import away

LAST = "999999"


def _takes_the_highest(one: Clone) -> None:
    task = task_at("NEW", int(LAST), title="Last")
    one.write_by_hand({path_of(LAST): render(task, b"")})
    one.sync()


def test_after_the_highest_number_new_tasks_are_written_down_in_every_clone(
    shared: Shared,
) -> None:
    first = shared.ready("One")
    _takes_the_highest(shared.ada)
    assert shared.bob.new("Bob's") == "000002"
    assert shared.ada.new("Ada's") == "000003"
    many = '{"title": "a", "key": "a"}\n{"title": "b", "key": "b", "depends_on": ["a"]}\n'
    shared.bob.manager("new", "--from-file", "-", stdin=many)
    shared.met()
    kept = [(task, shared.ada.show(task)["title"]) for task in (first, LAST)]
    assert kept == [(first, "One"), (LAST, "Last")]
    rest = [shared.ada.show(f"00000{number}")["title"] for number in range(2, 6)]
    assert rest == ["Bob's", "Ada's", "a", "b"]
    assert shared.ada.show("000005")["depends_on"] == ["000004"]
    assert shared.ada.manager("fsck").status == 0


def test_a_number_that_others_took_after_the_highest_is_replaced_by_a_low_one(
    shared: Shared,
) -> None:
    with away(shared.remote):
        assert shared.bob.offline("new", "Bob's").out.startswith("000001")
    assert shared.ada.new("Ada's") == "000001"
    _takes_the_highest(shared.ada)
    shared.bob.sync()
    shared.met()
    found = shared.ada.show("000002")
    assert (found["title"], found["former_ids"]) == ("Bob's", ["000001"])
    # What has been somebody's number means nobody else.
    assert shared.ada.new("Another") == "000003"
