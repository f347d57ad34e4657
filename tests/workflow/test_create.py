"""New tasks: one by one, by key, and many from a file in one ref update."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.domain.errors import Cycle, UnknownTask, UsageFault, WrongRole
from gittasks.workflow import configure, create, task_list
from gittasks.workflow.create import New
from gittasks.workflow.project import Options, Project
from tests.support.git import git
from tests.workflow.ground import begun, reopened

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def project(home: Path) -> Project:
    return begun(home / "project")


def ledger_commits(project: Project) -> int:
    return int(git(project.repo.common_dir, "rev-list", "--count", "refs/heads/gittasks"))


def moves(project: Project) -> int:
    """Returns how often the ledger's ref has moved."""
    return len(git(project.repo.common_dir, "reflog", "refs/heads/gittasks").splitlines())


def test_a_new_task_has_what_was_said(project: Project) -> None:
    first = create.create(project, New("First"))
    outcome = create.create(
        project,
        New(
            " Second ", body=b"Text", depends_on=["#1"], checks=["true"], parent="task/000001",
            labels=["ui", "ui"], priority=0, follows="1", assignee="ann",
        ),
    )  # fmt: skip
    task = project.task("000002")
    assert (first.task.id, outcome.task, outcome.source, outcome.target, outcome.kind) == (
        "000001", task, None, "NEW", "create",
    )  # fmt: skip
    assert task._replace(uid="", entered_at="", created_at="", created_by="") == task._replace(
        id="000002", uid="", title="Second", state="NEW", entered_at="", depends_on=("000001",),
        checks=("true",), parent="000001", labels=("ui",), priority=0, follows="000001",
        assignee="ann", created_at="", created_by="",
    )  # fmt: skip
    assert project.ledger.graph().body("000002") == b"Text"


def test_a_task_may_be_dispatched_in_the_same_ref_update(project: Project) -> None:
    create.create(project, New("First"))
    before = moves(project)
    outcome = create.create(project, New("Second", depends_on=["1"], enter="work"))
    assert (outcome.task.state, outcome.task.enters, moves(project) - before) == (
        "BLOCKED", "WORK", 1,
    )  # fmt: skip


def test_the_same_key_gives_the_same_task(project: Project) -> None:
    first = create.create(project, New("First", idempotency_key="k", enter="work"))
    before = ledger_commits(project)
    again = create.create(project, New("Another title", idempotency_key="k", enter="work"))
    other = create.create(project, New("First", idempotency_key="l"))
    assert (first.task.id, again.task.id, other.task.id) == ("000001", "000001", "000002")
    assert (again.changed, ledger_commits(project) - before) == (False, 1)


def test_checks_typed_here_are_approved_here(project: Project) -> None:
    from gittasks.workflow import trust

    create.create(project, New("First", checks=["make test"]))
    assert [one.command for one in trust.approvals(project)] == ["make test"]


def test_a_proposal_approves_nothing(project: Project) -> None:
    from gittasks.workflow import trust

    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    outcome = create.create(agent, New("First", checks=["curl evil"]))
    assert (outcome.task.proposed_by, trust.approvals(project)) == ("bot", ())


def test_a_proposal_cannot_be_dispatched_and_nothing_is_written(project: Project) -> None:
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    before = ledger_commits(project)
    with pytest.raises(WrongRole):
        create.create(agent, New("First", enter="work"))
    assert ledger_commits(project) == before


def test_a_new_task_starts_with_the_template_unless_it_has_a_body(project: Project) -> None:
    def write(path: str) -> None:
        Path(path).write_bytes(b"## Why\n")

    configure.edit_text(project, "template", write)
    create.create(project, New("First"))
    create.create(project, New("Second", body=b""))
    graph = project.ledger.graph()
    assert (graph.body("000001"), graph.body("000002")) == (b"## Why\n", b"")


def test_every_task_gets_the_labels_of_the_settings(project: Project) -> None:
    configure.set_value(project, "labels", "team")
    again = reopened(project)
    assert create.create(again, New("First", labels=["ui"])).task.labels == ("ui", "team")


@pytest.mark.parametrize(
    ("new", "refusal"),
    [
        (New("  "), UsageFault),
        (New("x", checks=[" "]), UsageFault),
        (New("x", labels=[""]), UsageFault),
        (New("x", depends_on=["7"]), UnknownTask),
        (New("x", parent="7"), UnknownTask),
        (New("x", depends_on=["seven"]), UnknownTask),
    ],
    ids=["blank title", "blank check", "blank label", "dependency", "parent", "spelling"],
)
def test_a_task_that_cannot_be_is_refused_and_nothing_is_written(
    project: Project, new: New, refusal: type[Exception]
) -> None:
    before = ledger_commits(project)
    with pytest.raises(refusal):
        create.create(project, new)
    assert ledger_commits(project) == before


def test_a_file_is_one_ref_update_and_keys_may_come_in_any_order(project: Project) -> None:
    before = moves(project)
    outcomes = create.create_all(
        project,
        b'{"title": "Needs both", "depends_on": ["b", "a"], "enter": "work"}\n'
        b'{"title": "B", "key": "b", "parent": "top", "enter": "design"}\n'
        b'{"title": "A", "key": "a", "depends_on": ["b"]}\n'
        b'{"title": "Top", "key": "top"}\n',
        "plan",
    )
    assert moves(project) - before == 1
    titles = {one.task.title: one.task for one in outcomes}
    assert [one.task.title for one in outcomes] == ["Needs both", "B", "A", "Top"]
    assert titles["Needs both"].depends_on == (titles["B"].id, titles["A"].id)
    assert (titles["B"].parent, titles["A"].depends_on) == (titles["Top"].id, (titles["B"].id,))
    assert [one.task.state for one in outcomes] == ["BLOCKED", "DESIGN", "NEW", "NEW"]


def test_a_file_in_order_gets_ids_in_order(project: Project) -> None:
    text = b"# One\nkey: 1\n\n# Two\ndepends_on: 1\n\n# Three\nparent: 1\n"
    outcomes = create.create_all(project, text, "plan")
    assert [one.task.id for one in outcomes] == ["000001", "000002", "000003"]


def test_a_parent_may_wait_for_its_child(project: Project) -> None:
    outcomes = create.create_all(
        project,
        b"# Parent\nkey: p\ndepends_on: c\n\n# Child\nkey: c\nparent: p\n",
        "plan",
    )
    parent, child = (one.task for one in outcomes)
    assert (parent.depends_on, child.parent) == ((child.id,), parent.id)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"# One\nkey: a\nparent: a\n", "  line 1, parent: The task a cannot be its own parent."),
        (
            b"# One\nkey: a\nparent: b\n\n# Two\nkey: b\nparent: a\n\n# Three\nparent: a\n",
            "  line 1, parent: The task a cannot stand below itself.\n"
            "  line 5, parent: The task b cannot stand below itself.",
        ),
    ],
    ids=["own parent", "ring"],
)
def test_a_ring_of_parents_in_a_file_is_told_by_line(text: bytes, told: str) -> None:
    with pytest.raises(UsageFault) as refused:
        task_list.read(text, "plan")
    assert refused.value.message.partition("\n")[2] == told


def test_a_ring_in_a_file_is_refused_with_its_keys(project: Project) -> None:
    before = ledger_commits(project)
    with pytest.raises(Cycle, match="a needs c, c needs b, b needs a"):
        create.create_all(
            project,
            b'{"title": "A", "key": "a", "depends_on": ["c"]}\n'
            b'{"title": "B", "key": "b", "depends_on": ["a"]}\n'
            b'{"title": "C", "key": "c", "depends_on": ["b"]}\n'
            b'{"title": "D", "depends_on": ["a"]}\n',
            "plan",
        )
    assert ledger_commits(project) == before


def test_one_unknown_id_in_a_file_refuses_all_of_it(project: Project) -> None:
    before = ledger_commits(project)
    with pytest.raises(UnknownTask):
        create.create_all(project, b"# One\n\n# Two\ndepends_on: 77\n", "plan")
    assert ledger_commits(project) == before


def test_a_file_given_twice_makes_the_tasks_that_have_a_key_once(project: Project) -> None:
    text = b"# One\nkey: a\n\n# Two\n"
    first = create.create_all(project, text, "plan")
    again = create.create_all(project, text, "plan")
    assert [one.task.id for one in first] == ["000001", "000002"]
    assert [(one.task.id, one.changed) for one in again] == [("000001", False), ("000003", True)]
    assert again[0].notes == ("The task 000001 was created with this key before; nothing to do.",)


def test_the_same_key_in_another_file_is_another_task(project: Project) -> None:
    create.create_all(project, b"# One\nkey: a\n", "plan")
    other = create.create_all(project, b"# Two\nkey: a\n", "other")
    assert [(one.task.id, one.changed) for one in other] == [("000002", True)]


def test_a_file_with_an_idempotency_key_is_applied_once(project: Project) -> None:
    text = b"# One\n\n# Two\nkey: b\n"
    create.create_all(project, text, "plan", idempotency_key="k")
    before = ledger_commits(project)
    again = create.create_all(project, text, "plan", idempotency_key="k")
    assert [one.task.id for one in again] == ["000001", "000002"]
    assert again[0].notes == ("2 of 2 tasks were created with their keys before.",)
    assert ledger_commits(project) == before


def test_who_writes_a_task_is_named(project: Project) -> None:
    spoken = reopened(project, Options(project.options.path, actor="eve"))
    assert create.create(spoken, New("First")).task.created_by == "eve"
