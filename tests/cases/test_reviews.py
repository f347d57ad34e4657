"""Reviews: second rejections, findings that get lost, drafts, edits under a claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.ground import Team, error_of


def rework(team: Team, task: str, text: str) -> None:
    tree = team.start(task)
    team.commit(tree, {"new.txt": text})
    team.agent("wim", "submit", "-m", "Done.", at=tree)


def test_the_second_rejection_holds_the_task_with_all_findings(team: Team) -> None:
    """Guards against work and review that bounce for ever at somebody's expense."""
    older = team.new("Older", "--idle")
    task = team.new("One")
    rework(team, task, "1\n")
    team.reject(task, "Too short.")
    rework(team, task, "2\n")
    team.reject(task, "Still too short.")
    shown = team.show(task)
    assert shown["state"] == "HELD_WORK"
    assert shown["held_reason"].index("Still too short.") < shown["held_reason"].index("Too short.")
    before = team.tip()
    team.agent("wim", "submit", task, "-m", "Again.", check=5)
    team.agent("wim", "claim", task, check=5)
    assert team.tip() == before
    rows = [row["id"] for row in team.manager("inbox", "--json").json()["data"]]
    assert rows == [task, older]
    team.manager("resume", task)
    assert team.show(task)["findings"]["items"] == ["Still too short."]
    rework(team, task, "3\n")
    team.reject(task, "Third.")
    assert team.state(task) == "WORK"
    rework(team, task, "4\n")
    team.reject(task, "Fourth.")
    assert team.state(task) == "HELD_WORK"


def test_an_accepted_review_starts_the_count_again(team: Team) -> None:
    """Guards against rejections of long ago, or by the manager, that count against the worker."""
    task = team.new("One")
    rework(team, task, "1\n")
    team.reject(task, "Once.")
    rework(team, task, "2\n")
    team.approve(task)
    team.manager("feedback", task, "-m", "The manager wants more.")
    rework(team, task, "3\n")
    team.reject(task, "Once again.")
    assert team.state(task) == "WORK"


def test_every_phase_counts_for_itself(team: Team) -> None:
    """Guards against a rejected design that makes the plan's first rejection the last."""
    task = team.new("One", "--enter", "design")
    for state, name, back in (("DESIGN", "dora", "DESIGN"), ("PLAN", "paul", "PLAN")):
        assert team.state(task) == state
        for reject in (True, False):
            team.start(task, name)
            team.agent(name, "submit", task, "-m", f"My {state.lower()}.")
            if reject:
                team.reject(task, "No.")
                assert team.state(task) == back
            else:
                team.approve(task)
    assert team.state(task) == "WORK"
    rework(team, task, "1\n")
    team.reject(task, "No.")
    assert team.state(task) == "WORK"
    rework(team, task, "2\n")
    team.reject(task, "No.")
    assert team.state(task) == "HELD_WORK"


@pytest.mark.parametrize("who", ["nobody", "worker", "manager", "other reviewer"])
def test_a_refused_feedback_leaves_the_findings_that_were_there(team: Team, who: str) -> None:
    """Guards against findings that are overwritten by a command that was refused."""
    task = team.new("One")
    rework(team, task, "1\n")
    team.reject(task, "The first finding.")
    document, tip = team.document(task), team.tip()
    words = ("feedback", task, "-m", "Another one.")
    match who:
        case "nobody":
            team.agent("nina", *words, check=None)
        case "worker":
            team.start(task)
            document, tip = team.document(task), team.tip()
            assert team.agent("wim", *words, check=5).status == 5
        case "manager":
            team.manager(*words, check=5)
        case _:
            team.agent("rita", *words, check=None)
    assert (team.document(task), team.tip()) == (document, tip)
    assert team.show(task)["findings"]["items"] == ["The first finding."]


def test_findings_reach_the_next_author_whoever_that_is(team: Team) -> None:
    """Guards against findings that live in a file which a reboot or another agent does not see."""
    task = team.new("One")
    rework(team, task, "1\n")
    team.reject(task, "Use tabs.")
    tree = team.start(task, "wanda")
    assert "Use tabs." in team.agent("wanda", "prime", at=tree).out
    assert "Use tabs." in (tree.parent / "ASSIGNMENT.md").read_text(encoding="utf-8")
    team.commit(tree, {"new.txt": "\t2\n"})
    team.agent("wanda", "submit", "-m", "Tabs.", at=tree)
    assert team.show(task)["findings"] is None


def test_a_draft_under_review_is_in_the_ledger(team: Team) -> None:
    """Guards against a design that lives only in somebody's scratch folder."""
    task = team.new("One", "--enter", "design", "-m", "Make it better.")
    tree = team.start(task, "dora")
    with (tree.parent / "ASSIGNMENT.md").open("a", encoding="utf-8") as file:
        file.write("A round wheel.\n")
    team.agent("dora", "submit", at=tree)
    assert b"## Design\n\nA round wheel.\n" in team.document(task)
    tree = team.start(task, "rita")
    assert "A round wheel." in (tree.parent / "ASSIGNMENT.md").read_text(encoding="utf-8")
    team.agent("rita", "feedback", "-m", "Make it square.", at=tree)
    assert b"A round wheel." not in team.document(task)
    tree = team.start(task, "dan")
    assert "A round wheel." in (tree.parent / "DRAFT.md").read_text(encoding="utf-8")


def test_the_managers_edit_of_a_held_body_is_not_lost(team: Team) -> None:
    """Guards against a correction that the next submit silently throws away."""
    task = team.new("One", "-m", "Make it blue.")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "blue\n"})
    team.manager("edit", task, "-m", "Make it red.", check=6)
    team.manager("edit", task, "-m", "Make it red.", "--force")
    error = error_of(team.agent("wim", "submit", "-m", "Done.", "--json", at=tree, check=5))
    assert "changed the text" in error["message"]
    assert "Make it red." in (tree.parent / "ASSIGNMENT.md").read_text(encoding="utf-8")
    team.agent("wim", "submit", "-m", "Done in red.", at=tree)
    assert team.document(task).partition(b"\n---\n")[2].startswith(b"Make it red.")


def test_a_title_may_change_while_somebody_works(team: Team) -> None:
    """Guards against a harmless edit that costs the worker its submit, or is undone by it."""
    task = team.new("One")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    team.manager("edit", task, "--title", "Two", "--set", "priority=0")
    team.agent("wim", "submit", "-m", "Done.", at=tree)
    shown = team.show(task)
    assert (shown["title"], shown["priority"], shown["state"]) == ("Two", 0, "WORK_REVIEW")


@pytest.mark.parametrize("ending", ["crlf", "mixed", "no last end", "trailing blanks"])
def test_an_editor_with_other_line_ends_loses_nothing(team: Team, ending: str) -> None:
    """Guards against a repair that takes changed line ends for a changed assignment."""
    task = team.new("One", "-m", "First line.\n\nSecond line.")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    path = tree.parent / "ASSIGNMENT.md"
    text = path.read_bytes()
    match ending:
        case "crlf":
            path.write_bytes((text + b"What I did.\n").replace(b"\n", b"\r\n"))
        case "mixed":
            path.write_bytes(text + b"What I did.\r\n")
        case "no last end":
            path.write_bytes(text + b"What I did.")
        case _:
            path.write_bytes(text + b"What I did.\n\n\n")
    team.agent("wim", "submit", at=tree)
    body = team.document(task).partition(b"\n---\n")[2]
    assert body == b"First line.\n\nSecond line.\n\n## Implementation Notes\n\nWhat I did.\n"


@pytest.mark.parametrize("how", ["above", "heading", "all", "emptied", "removed"])
def test_what_an_agent_wrote_survives_the_repair_of_the_rest(team: Team, how: str) -> None:
    """Guards against an agent that edits the task's text, and a repair that drops its work."""
    task = team.new("One", "-m", "First line.\n\nSecond line.")
    tree = team.start(task)
    team.commit(tree, {"new.txt": "new\n"})
    path = tree.parent / "ASSIGNMENT.md"
    text = path.read_text(encoding="utf-8")
    match how:
        case "above":
            path.write_text(text.replace("First", "Other") + "What I did.\n", encoding="utf-8")
        case "heading":
            path.write_text(text.replace("## Impl", "# Impl") + "What I did.\n", encoding="utf-8")
        case "all":
            path.write_text("What I did.\n", encoding="utf-8")
        case "emptied":
            path.write_text("", encoding="utf-8")
        case _:
            path.unlink()
    team.agent("wim", "submit", at=tree, check=5)
    assert team.state(task) == "WORK"
    if how in ("above", "heading", "all"):
        assert "What I did." in everything_beside(tree)
    team.agent("wim", "submit", "-m", "What I did.", at=tree, check=None)
    if team.state(task) == "WORK":
        team.agent("wim", "submit", at=tree)
    body = team.document(task).partition(b"\n---\n")[2]
    assert body.startswith(b"First line.\n\nSecond line.\n")
    assert b"What I did." in body


def everything_beside(tree: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in tree.parent.glob("*.md"))
