"""What an agent is told about a task: chosen by its state, filled with what the ledger says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from gittasks.domain.errors import CheckFailed, NotAllowed, UsageFault
from gittasks.domain.events import Configured, Event
from gittasks.domain.task import Task
from gittasks.domain.turn import Issue
from gittasks.prompts import fragments
from gittasks.workflow import (
    check,
    claim,
    configure,
    feedback,
    hold,
    note,
    prompts,
    resume,
    submit,
)
from gittasks.workflow.project import Project
from tests.prompts.test_fragments import EVERYTHING
from tests.support.builders import a_task
from tests.support.cli import tasks_inprocess
from tests.support.git import git
from tests.workflow.landings import Scene

TASK = "000001"
OWN = fragments.load()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "repo")


def writing(text: str) -> Callable[[str], None]:
    """Returns an editor that writes this."""

    def write(path: str) -> None:
        Path(path).write_text(text)

    return write


def store(project: Project, name: str, data: bytes) -> None:
    """Puts a prompt into the ledger as another version of the tool might, unlooked at."""
    event = Event(
        event_id="", at=0, actor="Ada", role="manager", host=project.host,
        change=Configured(path=f"prompts/{name}.md"), body=data,
    )  # fmt: skip
    project.ledger.append(lambda _graph: (event,))


def told(scene: Scene) -> str:
    """Returns what an agent would be sent now."""
    return prompts.preview(scene.manager, TASK).text


def parts(text: str, *wanted: str) -> list[str]:
    """Returns those of the texts that do not stand in the other one, blank lines around them."""
    return [one for one in wanted if f"\n\n{one}\n\n" not in f"\n\n{text}\n\n"]


def test_a_fresh_author_gets_the_brief_and_the_prompt_of_the_state(scene: Scene) -> None:
    scene.new(TASK, "make test", enter="WORK")
    text = told(scene)
    assert text.startswith('You are the worker of task 000001: "Task 1"\n\n')
    assert parts(text, "In the end this command has to succeed:\n\n> make test") == []
    ours = fragments.own("WORK").partition("\n")[0]
    assert f"\n\n{ours}\n\n" in text
    assert [word for word in ("feedback", "has moved", "Said by", "Finding") if word in text] == []
    scene.started(TASK)
    assert told(scene) == text


def test_an_author_is_told_the_findings_the_draft_and_what_was_said(scene: Scene) -> None:
    scene.new(TASK, enter="DESIGN")
    claim.start(scene.agent("pi-1", "designer"), TASK)
    assert "DRAFT.md" not in told(scene)
    submit.submit(scene.agent("pi-1", "designer"), TASK, text=b"A square wheel.")
    claim.claim(scene.agent("pi-2", "reviewer"), TASK)
    review = told(scene)
    assert "Judge the design" in review
    assert "- `git tasks submit` to approve.\n- `git tasks feedback" in review
    feedback.feedback(scene.agent("pi-2", "reviewer"), TASK, ("Make it round.", "/quit\nnow"))
    claim.start(scene.agent("pi-1", "designer"), TASK)
    hold.hold(scene.agent("pi-1", "designer"), TASK, "How round?")
    resume.resume(scene.manager, TASK, "Very.")
    note.note(scene.manager, TASK, "It is for a cart.")
    text = told(scene)
    assert "from it" in text.partition("../DRAFT.md")[2]
    sentences = (
        "Revise the design. Settle each of these findings:",
        "Finding 1:\n\n> Make it round.\n\nFinding 2:\n\n> /quit\n> now",
        'Said by "pi-1" since this was last worked on:\n\n> How round?',
    )
    assert parts(text, *sentences) == []
    assert text.index("> How round?") < text.index("> Very.") < text.index("> It is for a cart.")
    claim.start(scene.agent("pi-1", "designer"), TASK)
    assert told(scene) == text


def test_a_worker_is_told_what_a_failed_check_printed_where_it_is_known(scene: Scene) -> None:
    scene.new(TASK, "true", "echo out; exit 3")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    with pytest.raises(CheckFailed):
        scene.submitted(TASK)
    scene.commit(scene.folder, {"b.txt": "two\n"})
    project = scene.manager
    base = git(scene.folder, "rev-parse", "HEAD")
    said = prompts.check_failed_prompt(project, OWN, project.task(TASK))
    ended = "> echo out; exit 3\n\nIt ended with exit code 3, and last printed:\n\n> out"
    assert parts(said, f"Make these commands succeed in this tree:\n\n{ended}") == []
    text = told(scene)
    printed = "> echo out; exit 3\n\nIt printed last:\n\n"
    moved = f"- The base has moved by 1 commit(s) since. If you need them: `git merge {base[:12]}`."
    assert parts(text, "Go on with this work. Settle each of these findings:") == []
    assert f"{printed}> out\n" in text
    assert moved in text
    Path(check.logs_of(project, TASK, "2.log")).write_text("another run\n")
    assert f"{printed}> (its output is not kept here)\n" in told(scene)


@pytest.mark.parametrize("state", ["NEW", "CHECK", "HELD_WORK", "MANAGER_REVIEW", "CLOSED"])
def test_in_other_states_no_agent_is_told_anything(state: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        prompts.names_of(a_task(state=state, branch="task/000001"))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("Name a task at one of DESIGN, DESIGN_REVIEW, PLAN,")


@pytest.mark.parametrize("issue", get_args(Issue))
def test_a_nudge_quotes_what_is_known(issue: Issue) -> None:
    task: Task = a_task(state="PLAN", dispatched="a" * 40)
    text = prompts.nudge(OWN, issue, task, "- all\n/of it")
    assert "\n\n> - all\n> /of it\n" in text
    assert ">" not in prompts.nudge(OWN, issue, task)
    assert "`git tasks feedback" not in text
    everything = prompts.nudge(EVERYTHING, issue, task, "it").splitlines()
    given = [line for line in everything if line]
    assert given == ["000001", '"Task 1"', "PLAN", "planner", "a" * 12, "> it"]


def test_a_project_replaces_what_it_wants_and_a_claim_can_record_it(scene: Scene) -> None:
    scene.new(TASK, enter="PLAN")
    project = scene.manager
    configure.edit_text(project, "prompts/PLAN", writing("Plan {{title}}.\n"))
    text = told(scene)
    assert text.endswith(' without an answer.\n\nPlan "Task 1".\n')
    oid = git(scene.folder, "rev-parse", "gittasks:prompts/PLAN.md")
    project = scene.manager
    loaded = prompts.prompts_of(project)
    assert prompts.dispatch_prompt(project, loaded, project.task(TASK)) == (text, {"PLAN": oid})
    assert (loaded.ids, loaded.sources["PLAN"]) == ({"PLAN": oid}, "override")
    shown = json.loads(tasks_inprocess(scene.folder, "show", "1", "--prompt", "--json").out)
    assert shown["data"] == {
        "id": TASK, "state": "PLAN", "prompt": text, "files": {"brief": None, "PLAN": oid},
    }  # fmt: skip
    assert tasks_inprocess(scene.folder, "show", "1", "--prompt").out == text


def test_every_prompt_of_a_task_is_given_all_that_it_may_use(scene: Scene) -> None:
    scene.new(TASK, "false")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    with pytest.raises(CheckFailed):
        scene.submitted(TASK)
    project = scene.manager
    task = project.task(TASK)
    text = prompts.dispatch_prompt(project, EVERYTHING, task)[0]
    text += prompts.check_failed_prompt(project, EVERYTHING, task)
    assert text.count("> false\n") == 3


def test_editing_begins_with_the_text_of_the_tool_and_refuses_a_faulty_one(scene: Scene) -> None:
    project = scene.manager
    seen: list[str] = []
    changed = configure.edit_text(
        project, "prompts/WORK", lambda path: seen.append(Path(path).read_text())
    )
    assert (seen, changed.changed) == ([fragments.own("WORK")], False)
    with pytest.raises(UsageFault) as caught:
        configure.edit_text(project, "prompts/WORK", writing("Go.\n{{nmae}}\n"))
    assert caught.value.message.startswith(
        "This prompt cannot be used.\n  prompts/WORK.md, line 2: there is no variable nmae here;"
    )
    assert Path(str(caught.value.hint).split()[1].rstrip(",")).read_text() == "Go.\n{{nmae}}\n"
    with pytest.raises(UsageFault) as caught:
        configure.edit_text(project, "prompts/WROK", writing("Go.\n"))
    assert caught.value.message == "There is no prompt WROK."


def test_a_faulty_prompt_of_the_ledger_is_named_and_can_be_taken_away(scene: Scene) -> None:
    scene.new(TASK)
    store(scene.manager, "WROK", b"Go.\n")
    store(scene.manager, "PLAN", b"Go.\n\xff\n")
    with pytest.raises(fragments.BadPrompts) as caught:
        told(scene)
    assert caught.value.message == (
        "The prompts of this project cannot be used.\n"
        "  prompts/WROK.md, line 1: there is no prompt of this name; did you mean WORK?\n"
        "  prompts/PLAN.md, line 2: it holds a character that cannot be seen, or is not UTF-8."
    )
    for name in ("WROK", "PLAN"):
        configure.unset(scene.manager, f"prompts/{name}")
    assert told(scene).startswith("You are the worker")
