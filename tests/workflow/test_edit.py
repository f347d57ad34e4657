"""Changing a document by options and in the editor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.domain.errors import (
    AlreadyClaimed,
    Cycle,
    GittasksError,
    NotAllowed,
    Refused,
    UsageFault,
    WrongRole,
)
from gittasks.workflow import create, dependencies, edit, trust
from gittasks.workflow.claim import claim
from gittasks.workflow.create import New
from gittasks.workflow.project import Options, Project
from gittasks.workflow.submit import submit
from tests.support.git import git
from tests.workflow.ground import begun, reopened

BODY = b"\n\n    code\n---\n----\n+++\n```yaml\nid: 1\n```\n  \n\n\n"


@pytest.fixture
def project(home: Path) -> Project:
    project = begun(home / "project")
    create.create(project, New("First", body=BODY, checks=["true"]))
    create.create(project, New("Second"))
    return project


def tip(project: Project) -> str:
    return git(project.repo.common_dir, "rev-parse", "refs/heads/gittasks")


def document(project: Project, task: str) -> bytes:
    path = f"gittasks:tasks/{task[:4]}/{task}.md"
    return git(project.repo.common_dir, "cat-file", "blob", path).encode()


def writing(old: str, new: str) -> Callable[[str], None]:
    """Returns an editor that replaces one text by another."""

    def write(path: str) -> None:
        text = Path(path).read_bytes().decode()
        assert old in text
        Path(path).write_bytes(text.replace(old, new, 1).encode())

    return write


def kept_files(project: Project) -> list[Path]:
    folder = Path(project.state_dir, "edit")
    return sorted(folder.iterdir()) if folder.exists() else []


def test_fields_are_set_by_options_and_the_body_stays(project: Project) -> None:
    outcome = edit.edit(
        project,
        "1",
        title="Other",
        assignments=[
            'labels=["a", "b"]', "priority=0", "assignee=ann", 'depends_on=["#2"]',
            'checks=["make test"]', "x-note=22:30",
        ],
    )  # fmt: skip
    task = outcome.task
    assert (task.title, task.labels, task.priority, task.assignee, task.depends_on) == (
        "Other", ("a", "b"), 0, "ann", ("000002",),
    )  # fmt: skip
    assert (task.checks, task.extra) == (("make test",), (("x-note", ' "22:30"'),))
    assert project.ledger.graph().body("000001") == BODY
    assert [one.command for one in trust.approvals(project)] == ["make test", "true"]


def test_fields_are_emptied_by_options(project: Project) -> None:
    edit.edit(project, "1", assignments=['labels=["a"]', "priority=4", "assignee=ann", "x-a=1"])
    task = edit.edit(project, "1", unset=["labels", "priority", "assignee", "x-a", "checks"]).task
    assert (task.labels, task.priority, task.assignee, task.extra, task.checks) == (
        (), 2, None, (), (),
    )  # fmt: skip


def test_the_body_is_replaced_by_options_byte_for_byte(project: Project) -> None:
    edit.edit(project, "1", body=b"\r\n no end")
    assert project.ledger.graph().body("000001") == b"\r\n no end"


def test_what_is_so_already_writes_nothing(project: Project) -> None:
    before = tip(project)
    outcome = edit.edit(project, "1", title="First", assignments=["priority=2"], body=BODY)
    assert (outcome.changed, tip(project)) == (False, before)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("priority", "priority is not spelled NAME=VALUE."),
        ("=1", "=1 is not spelled NAME=VALUE."),
        ("priority=9", "priority"),
        ("priority=high", "priority"),
        ("labels=ui", "The field labels is a list, and ui is none."),
        ("checks=[1]", "checks"),
        ("state=WORK", "The field state is not set by hand."),
        ("claimed_by=me", "The field claimed_by is not set by hand."),
        ("x-=1", "x-"),
        ("title=a\nb", "title"),
        ("depends_on=[7, true]", "there is no task"),
    ],
)
def test_a_value_that_cannot_be_is_refused(project: Project, assignment: str, words: str) -> None:
    before = tip(project)
    with pytest.raises(GittasksError) as caught:
        edit.edit(project, "1", assignments=[assignment])
    assert words.lower() in caught.value.message.lower()
    assert (caught.value.exit_code in (2, 4), tip(project)) == (True, before)


def test_a_field_named_twice_is_refused(project: Project) -> None:
    with pytest.raises(UsageFault, match="title is named twice"):
        edit.edit(project, "1", title="a", assignments=["title=b"])
    with pytest.raises(UsageFault, match="labels is named twice"):
        edit.edit(project, "1", assignments=["labels=[]"], unset=["labels"])


def test_the_title_cannot_be_taken_away(project: Project) -> None:
    with pytest.raises(UsageFault, match="needs a title"):
        edit.edit(project, "1", unset=["title"])


def test_a_ring_is_refused_by_every_way(project: Project) -> None:
    dependencies.add(project, "2", ["1"])
    before = tip(project)
    with pytest.raises(Cycle):
        dependencies.add(project, "1", ["2"])
    with pytest.raises(Cycle):
        dependencies.add(project, "1", ["1"])
    with pytest.raises(Cycle):
        edit.edit(project, "1", assignments=['depends_on=["2"]'])
    with pytest.raises(Cycle):
        edit.in_editor(project, "1", writing("checks:", 'depends_on: ["000002"]\nchecks:'))
    assert tip(project) == before


def test_a_dependency_is_removed_and_the_task_goes_on(project: Project) -> None:
    dependencies.add(project, "2", ["1"])
    assert submit(project, "2", enter="work").target == "BLOCKED"
    outcome = dependencies.remove(project, "2", ["1"])
    assert (outcome.task.state, outcome.task.depends_on, outcome.unblocked) == (
        "WORK", (), ("000002",),
    )  # fmt: skip


def test_a_dependency_that_is_there_or_gone_already_writes_nothing(project: Project) -> None:
    dependencies.add(project, "2", ["1"])
    before = tip(project)
    assert not dependencies.add(project, "2", ["1"]).changed
    assert not dependencies.remove(project, "1", ["2"]).changed
    assert tip(project) == before


def test_only_the_manager_edits(project: Project) -> None:
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    with pytest.raises(WrongRole):
        edit.edit(agent, "1", title="Mine")


def test_a_held_body_needs_force_and_the_title_does_not(project: Project) -> None:
    submit(project, "1", enter="work")
    claim(project, "1")
    assert edit.edit(project, "1", title="Other").task.title == "Other"
    with pytest.raises(AlreadyClaimed):
        edit.edit(project, "1", body=b"new")
    assert edit.edit(project, "1", body=b"new", force=True).changed


def test_the_editor_gets_the_document_and_its_changes_are_applied(project: Project) -> None:
    seen: list[bytes] = []

    def write(path: str) -> None:
        seen.append(Path(path).read_bytes())
        writing('"First"', '"Better"')(path)
        writing("    code", "    more")(path)

    before = document(project, "000001")
    outcome = edit.in_editor(project, "1", write)
    # The helper that reads git's output takes the last line ends away.
    assert seen[0].rstrip(b"\n") == before
    assert outcome.task.title == "Better"
    assert project.ledger.graph().body("000001") == BODY.replace(b"code", b"more")
    assert kept_files(project) == []


def test_the_editor_may_drop_a_field_and_write_own_keys(project: Project) -> None:
    edit.edit(project, "1", assignments=["x-old=1", 'labels=["a"]'])

    def write(path: str) -> None:
        writing('labels: ["a"]\n', "")(path)
        writing('x-old: "1"', "x-new: [1,  2]")(path)

    task = edit.in_editor(project, "1", write).task
    assert (task.labels, task.extra) == ((), (("x-new", " [1,  2]"),))


def test_an_editor_that_changes_nothing_writes_nothing(project: Project) -> None:
    before = tip(project)
    assert not edit.in_editor(project, "1", lambda _path: None).changed
    assert (tip(project), kept_files(project)) == (before, [])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("priority", "priority", "never"),
        ('title: "First"', "title: no", "title"),
        ("state: NEW", "state: WORK", "The field state is not changed by hand."),
        ("---\n", "", "does not verify"),
        ('id: "000001"', 'id: "000002"', "id"),
        ('title: "First"', 'title: "First"\nfoo: 1', "foo"),
    ],
)
def test_a_result_that_cannot_be_taken_is_kept_and_named(
    project: Project, old: str, new: str, words: str
) -> None:
    if words == "never":
        old, new, words = 'title: "First"', 'title: ""', "title"
    before = tip(project)
    with pytest.raises(UsageFault) as caught:
        edit.in_editor(project, "1", writing(old, new))
    (kept,) = kept_files(project)
    assert words in caught.value.message
    assert str(kept) in str(caught.value.hint)
    assert new in kept.read_text(encoding="utf-8")
    assert tip(project) == before


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(project: Project) -> None:
    def write(path: str) -> None:
        edit.edit(reopened(project), "1", title="Theirs", body=b"theirs")
        writing('"First"', '"Mine"')(path)
        writing("    code", "    mine")(path)

    with pytest.raises(Refused, match=r"Somebody else changed the title, body of 000001"):
        edit.in_editor(project, "1", write)
    assert project.task("000001").title == "Theirs"
    assert len(kept_files(project)) == 1


def test_what_somebody_else_changed_elsewhere_stays(project: Project) -> None:
    def write(path: str) -> None:
        edit.edit(reopened(project), "1", assignments=["priority=0"])
        writing('"First"', '"Mine"')(path)

    task = edit.in_editor(project, "1", write).task
    assert (task.title, task.priority) == ("Mine", 0)


def test_whoever_may_not_edit_hears_it_before_the_editor_opens(project: Project) -> None:
    def never(_path: str) -> None:
        raise AssertionError

    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    with pytest.raises(WrongRole):
        edit.in_editor(agent, "1", never)


def test_a_closed_task_is_not_edited(project: Project) -> None:
    from gittasks.workflow.abort import abort

    abort(project, "1")
    with pytest.raises(NotAllowed):
        edit.edit(project, "1", title="x")
    with pytest.raises(NotAllowed):
        edit.in_editor(project, "1", lambda _path: None)


def test_an_editor_that_fails_leaves_no_file_behind(project: Project) -> None:
    def fail(_path: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        edit.in_editor(project, "1", fail)
    assert kept_files(project) == []


def test_an_editor_that_fails_after_writing_keeps_what_was_written(project: Project) -> None:
    def fail(path: str) -> None:
        writing("First", "Half")(path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        edit.in_editor(project, "1", fail)
    assert len(kept_files(project)) == 1


def test_the_body_is_sacred_through_every_step(project: Project) -> None:
    submit(project, "1", enter="work")
    worker = reopened(project, Options(project.options.path, actor="ann"))
    claim(worker, "1", with_tree=False)
    edit.edit(project, "1", title="Changed")
    assert project.ledger.graph().body("000001") == BODY
