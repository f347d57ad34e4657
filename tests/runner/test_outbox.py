"""What agents leave in their outboxes, and what others do to their tasks meanwhile."""

from __future__ import annotations

import os
import shutil

import pytest

from gittasks.workflow.abort import abort
from gittasks.workflow.claim import release
from gittasks.workflow.hold import hold
from tests.support.git import git
from tests.support.teams import PUPPET, Puppet, Team, puppet

ID = "0123456789abcdef0123456789abcdef"


def test_remarks_become_events_once_and_end_nothing(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("note", id=ID, text="Read it all.")
    agent.settle()
    team.until_told(agent, 2)
    # The same file once more: a runner that was killed had not taken it away.
    agent.leave("note", id=ID, text="Read it all.")
    agent.leave("note", text="And understood.", artifacts={"notes": "notes.txt"})
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    notes = [event for event in team.history() if event.kind == "note"]
    assert [(note.text, note.actor) for note in notes] == [
        ("Read it all.", PUPPET),
        ("And understood.", PUPPET),
    ]
    assert notes[0].event_id == ID
    assert team.seen().artifacts == (("notes", "notes.txt"),)


def test_an_entry_has_the_id_of_its_event(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("submit", id=ID, text="As asked.")
    agent.settle()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert [event.kind for event in team.history() if event.event_id == ID] == ["submit"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (f"{ID}.json", b"{", "Expecting property name"),
        (f"{ID}.json", b"[]", "it is no object"),
        (f"{ID}.json", b'{"verb": "land", "task": "000001"}', "its verb is none of submit"),
        (f"{ID}.json", b'{"verb": "note", "task": 1, "claim": ""}', "1 is no text"),
        (f"{ID}.json", b'{"verb": "note"}', "'task'"),
        (f"{ID}.json", b"\xff", "codec can't decode"),
        (f"{ID}.json", b"[" * 100_000, "recursion"),
        ("mine.json", b"{}", "its name is no id of an event"),
    ],
)
def test_what_is_no_entry_is_named_and_put_aside(
    team: Team, name: str, content: bytes, why: str
) -> None:
    team.task()
    team.start()
    agent = team.agent()
    (agent.outbox / name).write_bytes(content)
    agent.settle()
    team.until_told(agent, 2)
    assert os.listdir(agent.outbox) == [f"{name}.bad"]
    [told] = team.heard("outbox")
    assert told["error"].startswith(f"{name} in the outbox is no entry: ")
    assert why in told["error"]
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")


def test_an_entry_that_is_no_file_is_put_aside_and_hides_none(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    (agent.outbox / f"{ID}.json").symlink_to("/etc/passwd")
    os.mkfifo(agent.outbox / f"{ID[::-1]}.json")
    agent.submit()
    team.until(lambda: team.state() == "DESIGN_REVIEW")
    assert len(team.heard("outbox")) == 2


def test_an_entry_for_another_claim_counts_nothing(team: Team) -> None:
    team.pool(puppet(slots=2))
    for title in ("One", "Two"):
        team.task(title)
    team.start()
    first, second = team.agents(2)
    first.leave("submit", text="As asked.", task=second.task, claim=second.outbox.name)
    first.settle()
    team.until(lambda: first.is_alive() is False or len(first.prompts) == 2)
    assert [team.kinds(task)[2:] for task in ("000001", "000002")] == [["claim"], ["claim"]]


@pytest.mark.parametrize("does", [hold, release, abort])
def test_an_agent_whose_task_is_taken_away_is_ended_and_nothing_of_its_work_is_lost(
    team: Team, does: object
) -> None:
    team.task(enter="work")
    team.start()
    agent = team.agent()
    tip = agent.work()
    (agent.tree / "loose.txt").write_text("loose\n")
    manager = team.project()
    if does is hold:
        hold(manager, "1", "Wait.")
    elif does is release:
        release(manager, "1", force=True)
    else:
        hold(manager, "1", "Wait.")
        abort(manager, "1", "Not needed.")
    team.tick()
    assert not agent.is_alive()
    assert team.heard("lost") == [{"slot": PUPPET, "task": "000001", "error": "The claim is over."}]
    kept = git(team.folder, "for-each-ref", "--format=%(objectname)", "--contains", tip)
    assert tip in kept.split("\n")
    assert list(team.folder.parent.rglob("loose.txt"))


def test_what_an_agent_leaves_when_its_claim_is_over_changes_nothing(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.leave("submit", text="As asked.")
    agent.settle()
    hold(team.project(), "1", "Wait.")
    team.tick(3)
    assert (team.is_held(), team.kinds()[2:]) == (True, ["claim", "hold"])
    assert not agent.is_alive()


def test_a_task_whose_tree_cannot_be_made_stops_none_of_the_others(team: Team) -> None:
    team.pool(puppet(slots=2))
    for title in ("One", "Two"):
        team.task(title)
    team.start()
    place = team.folder.parent / "repo.tasks"
    place.mkdir(exist_ok=True)
    (place / "000001").write_text("in the way\n")
    agent = team.agent()
    assert agent.task == "000002"
    agent.submit()
    team.until(lambda: team.state("000002") == "DESIGN_REVIEW")
    assert {told["task"] for told in team.heard("trouble")} == {"000001"}
    assert team.holder() is None
    os.unlink(place / "000001")
    team.advance(5)
    assert [team.agent().task for _ in range(2)] == ["000002", "000001"]


def test_a_task_that_can_never_be_begun_is_held_in_the_end(team: Team) -> None:
    team.task()
    team.start()
    place = team.folder.parent / "repo.tasks"
    place.mkdir(exist_ok=True)
    (place / "000001").write_text("in the way\n")
    for _ in range(5):
        team.advance(65)
    assert team.is_held()
    assert str(team.seen().held_reason).startswith("No agent can begin here, 5 times: ")
    assert len(team.heard("trouble")) == 5


def is_left(agent: Puppet) -> bool:
    return os.path.exists(agent.outbox)


def test_an_outbox_goes_with_its_claim(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    agent.submit()
    other = team.agent()
    assert (is_left(agent), is_left(other)) == (False, True)


def test_an_outbox_that_was_removed_is_empty(team: Team) -> None:
    team.task()
    team.start()
    agent = team.agent()
    shutil.rmtree(agent.outbox)
    agent.settle()
    team.until_told(agent, 2)
    assert team.heard("nudge")[0]["issue"] == "missing-result"
