"""Agents that are plain scripts: what their environment says, and the outbox of a runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cli import Result, tasks
from tests.support.git import git, make_repository


class Ground(NamedTuple):
    """A repository with one task at WORK, claimed by an agent through its environment."""

    folder: Path
    tree: Path
    env: dict[str, str]

    def agent(self, *words: str, check: int | None = 0, **env: str) -> Result:
        """Runs a command as the agent, in its tree."""
        return tasks(self.tree, *words, check=check, env={**self.env, **env})

    def data(self) -> dict[str, Any]:
        """Returns the task as it stands in the ledger."""
        data = tasks(self.folder, "show", "1", "--json").json()["data"]
        assert isinstance(data, dict)
        return data

    def tip(self) -> str:
        """Returns the commit of the ledger."""
        return git(self.folder, "rev-parse", "gittasks")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Returns a claimed task; the agent knows its name, role, task and secret."""
    folder = make_repository(tmp_path / "repo")
    tasks(folder, "init")
    tasks(folder, "new", "First", "--enter", "work", "--check", "true")
    claimed = tasks(folder, "start", "1", "--json", env={"GITTASKS_AGENT": "pi-1"}).json()["data"]
    env = {
        "GITTASKS_AGENT": "pi-1",
        "GITTASKS_ROLE": "worker",
        "GITTASKS_TASK": "000001",
        "GITTASKS_CLAIM": claimed["claim_secret"],
    }
    return Ground(folder, Path(claimed["tree"]), env)


def _commit(ground: Ground) -> str:
    (ground.tree / "new.txt").write_text("new\n", encoding="utf-8")
    git(ground.tree, "add", "new.txt")
    git(ground.tree, "commit", "-q", "-m", "Add it")
    return git(ground.tree, "rev-parse", "HEAD")


def _entries(outbox: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(outbox.glob("*.json"))]


def test_a_verb_without_an_id_means_the_task_of_the_environment(ground: Ground) -> None:
    elsewhere = ground.folder
    _commit(ground)
    assert "000001 First" in tasks(elsewhere, "prime", env=ground.env).out
    assert tasks(elsewhere, "note", "half done", env=ground.env).out == "000001 note\n"
    said = tasks(elsewhere, "submit", "-m", "Done.", env=ground.env).out
    assert said == "000001 submit WORK -> WORK_REVIEW\n"


def test_a_claim_that_is_not_the_present_one_is_refused_by_the_holders_name(
    ground: Ground,
) -> None:
    _commit(ground)
    before = ground.tip()
    result = ground.agent("submit", "-m", "Done.", check=6, GITTASKS_CLAIM="0" * 32)
    assert "is stale: the task is at WORK, held by pi-1." in result.err
    assert ground.tip() == before


def test_another_role_than_that_of_the_environment_is_refused(ground: Ground) -> None:
    before = ground.tip()
    for role in ("manager", "reviewer"):
        assert "GITTASKS_ROLE" in ground.agent("submit", "--role", role, check=5).err
    assert ground.tip() == before


def test_an_agent_that_drops_its_environment_is_nobody_and_not_the_manager(ground: Ground) -> None:
    before = ground.tip()
    result = tasks(ground.tree, "abort", "1", check=5, env={"GITTASKS_AGENT": None})
    assert "there is no abort" in result.err
    lost = tasks(ground.tree, "edit", "1", "--title", "Mine", check=5)
    assert "Only the manager may edit 000001; you speak as nobody in particular." in lost.err
    assert ground.tip() == before


def test_with_an_outbox_a_submit_moves_no_ref_and_leaves_one_entry(
    ground: Ground, tmp_path: Path
) -> None:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    tip, before = _commit(ground), ground.tip()
    ground.agent("submit", "-m", "Done.", GITTASKS_OUTBOX=str(outbox))
    (entry,) = _entries(outbox)
    assert ground.tip() == before
    assert [path.suffix for path in outbox.iterdir()] == [".json"]
    data = ground.data()
    assert {key: entry[key] for key in ("verb", "task", "uid", "claim", "text", "tip")} == {
        "verb": "submit",
        "task": "000001",
        "uid": data["uid"],
        "claim": data["claim"],
        "text": "## Implementation Notes\n\nDone.\n",
        "tip": tip,
    }


def test_with_an_outbox_a_refusal_comes_at_once_and_leaves_no_entry(
    ground: Ground, tmp_path: Path
) -> None:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    (ground.tree / "half.txt").write_text("half\n", encoding="utf-8")
    result = ground.agent("submit", "-m", "Done.", check=5, GITTASKS_OUTBOX=str(outbox))
    assert "half.txt" in result.err
    assert list(outbox.iterdir()) == []


def test_with_an_outbox_holds_notes_and_findings_are_left_too(
    ground: Ground, tmp_path: Path
) -> None:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    before = ground.tip()
    ground.agent("note", "a word", "--artifact", "log=x.txt", GITTASKS_OUTBOX=str(outbox))
    ground.agent("hold", "--reason", "Which one?", GITTASKS_OUTBOX=str(outbox))
    assert ground.tip() == before
    said = sorted((entry["verb"], entry["text"], entry["reason"]) for entry in _entries(outbox))
    assert said == [("hold", "", "Which one?"), ("note", "a word", "")]
    _commit(ground)
    ground.agent("submit", "-m", "Done.")
    review = {"GITTASKS_AGENT": "pi-2"}
    tasks(ground.folder, "claim", "1", env=review)
    box = tmp_path / "second"
    box.mkdir()
    words = ("feedback", "1", "-m", "Too short.")
    tasks(ground.folder, *words, env={**review, "GITTASKS_OUTBOX": str(box)})
    (entry,) = _entries(box)
    assert (entry["verb"], entry["findings"]) == ("feedback", ["Too short."])


def test_an_outbox_that_is_not_there_is_named(ground: Ground, tmp_path: Path) -> None:
    _commit(ground)
    missing = str(tmp_path / "missing")
    result = ground.agent("submit", "-m", "Done.", check=5, GITTASKS_OUTBOX=missing)
    assert f"The outbox {missing} does not exist." in result.err


def test_prime_fits_two_kilobytes_and_tells_what_was_answered(ground: Ground) -> None:
    ground.agent("hold", "--reason", "Tabs or blanks?")
    tasks(ground.folder, "resume", "1", "-m", "Blanks.")
    env = {"GITTASKS_AGENT": "pi-1"}
    tasks(ground.folder, "start", "1", env=env)
    for number in range(30):
        tasks(ground.folder, "note", "1", f"Remark {number} " + "x" * 300)
    text = tasks(ground.tree, "prime", env=env).out
    assert len(text.encode()) <= 2048
    assert "Said since:" in text
    assert "git tasks submit" in text


def test_the_answer_to_a_question_reaches_who_goes_on(ground: Ground) -> None:
    ground.agent("hold", "--reason", "Tabs or blanks?")
    tasks(ground.folder, "resume", "1", "-m", "Blanks.")
    tasks(ground.folder, "start", "1", env={"GITTASKS_AGENT": "pi-9"})
    text = tasks(ground.folder, "prime", "1", env={"GITTASKS_AGENT": "pi-9"}).out
    assert "Blanks." in text


def test_giving_back_twice_is_once_and_the_claim_of_another_is_left_alone(ground: Ground) -> None:
    other = tasks(ground.folder, "release", "1", check=6, env={"GITTASKS_AGENT": "pi-2"})
    assert "held by pi-1, not by you" in other.err
    ground.agent("release", "-m", "Lunch.")
    before = ground.tip()
    env = {"GITTASKS_AGENT": "pi-1"}
    assert "nothing to do" in tasks(ground.folder, "release", "1", env=env).out
    assert ground.tip() == before


def test_a_submit_given_twice_says_that_there_is_nothing_to_do(ground: Ground) -> None:
    _commit(ground)
    ground.agent("submit", "-m", "Done.")
    before = ground.tip()
    assert "nothing to do" in ground.agent("submit").out
    assert ground.tip() == before


def test_who_reviews_his_own_work_is_told_so(ground: Ground) -> None:
    _commit(ground)
    ground.agent("submit", "-m", "Done.")
    said = tasks(ground.folder, "claim", "1", env={"GITTASKS_AGENT": "pi-1"})
    assert said.err == "You review your own work on 000001.\n"


def test_a_forced_edit_under_a_claim_is_told_at_the_submit_and_nothing_written_is_lost(
    ground: Ground,
) -> None:
    _commit(ground)
    assignment = ground.tree.parent / "ASSIGNMENT.md"
    assignment.write_text(assignment.read_text(encoding="utf-8") + "1. Done.\n", encoding="utf-8")
    assert tasks(ground.folder, "edit", "1", "-F", "-", stdin="New words.\n", check=6).out == ""
    tasks(ground.folder, "edit", "1", "-F", "-", "--force", stdin="New words.\n")
    refused = ground.agent("submit", check=5)
    assert "changed the text or the checks of 000001" in refused.err
    text = assignment.read_text(encoding="utf-8")
    assert text == "New words.\n\n## Implementation Notes\n\n1. Done.\n"
    ground.agent("submit")
    assert ground.data()["body"] == text
