"""Secrets that are written into the ledger are warned about, never refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gittasks.workflow import create, edit
from gittasks.workflow.create import New
from gittasks.workflow.note import note
from gittasks.workflow.project import Project
from tests.workflow.ground import begun

SECRET = "password=hunter2hunter2"
WARNING = (
    "What you wrote into 000001 looks like a secret; it is in the history now, so change the"
    " secret itself."
)


@pytest.fixture
def project(home: Path) -> Project:
    return begun(home / "project")


def test_a_secret_anywhere_in_a_task_is_warned_about(project: Project) -> None:
    created = create.create(project, New("One", body=f"Use {SECRET}.\n".encode()))
    edited = edit.edit(project, "1", title=f"Use {SECRET}")
    noted = note(project, "1", SECRET)
    own = edit.edit(project, "1", assignments=[f"x-token={SECRET}"])
    assert [one.notes for one in (created, edited, noted, own)] == [(WARNING,)] * 4


def test_plain_text_is_not_warned_about(project: Project) -> None:
    created = create.create(project, New("Change the password page", body=b"No secret."))
    assert (created.notes, note(project, "1", "Seen in " + "a1" * 20).notes) == ((), ())


def test_each_task_of_a_file_is_warned_about_once(project: Project) -> None:
    plan = f"# One\n\n{SECRET}\n\n# Two\n".encode()
    assert [one.notes for one in create.create_all(project, plan, "plan")] == [(WARNING,), ()]
