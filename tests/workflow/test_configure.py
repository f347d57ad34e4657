"""What all clones share: settings, template and prompts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gittasks.domain import config
from gittasks.domain.errors import Corrupt, NoLedger, UsageFault, WrongRole
from gittasks.workflow import configure
from gittasks.workflow.project import Project
from tests.support.git import git, make_repository
from tests.workflow.ground import begun, opened, reopened

DEFAULTS: dict[str, object] = {
    "format": 1,
    "minimum_version": None,
    "base": "master",
    "landing": "merge",
    "rejection_limit": 2,
    "check_failure_limit": 5,
    "lease": "24h",
    "runner_lease": "1h",
    "labels": [],
}


@pytest.fixture
def project(home: Path) -> Project:
    return begun(home / "project")


def tip(project: Project) -> str:
    return git(project.repo.common_dir, "rev-parse", "refs/heads/gittasks")


def writing(data: bytes) -> Callable[[str], None]:
    """Returns an editor that writes this."""

    def write(path: str) -> None:
        Path(path).write_bytes(data)

    return write


def shared(project: Project, path: str) -> str:
    return git(project.repo.common_dir, "cat-file", "blob", f"gittasks:{path}")


def test_a_new_ledger_has_the_defaults(project: Project) -> None:
    assert configure.values(project) == DEFAULTS


def test_a_setting_is_one_commit(project: Project) -> None:
    before = tip(project)
    changed = configure.set_value(project, "landing", "squash")
    assert changed.settings == {**DEFAULTS, "landing": "squash"}
    assert (changed.commit, changed.changed) == (tip(project), True)
    assert git(project.repo.common_dir, "rev-parse", "gittasks^") == before
    assert shared(project, "project.yaml").splitlines() == [
        "format: 1", 'base: "master"', "landing: squash",
    ]  # fmt: skip
    assert configure.value(reopened(project), "landing") == "squash"


def test_a_setting_goes_back_to_its_default(project: Project) -> None:
    configure.set_value(project, "lease", "2h")
    assert configure.unset(project, "lease").settings == DEFAULTS


def test_what_is_so_already_writes_nothing(project: Project) -> None:
    before = tip(project)
    assert not configure.set_value(project, "lease", "24h").changed
    assert not configure.unset(project, "lease").changed
    assert not configure.unset(project, "template").changed
    assert tip(project) == before


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("landing", "fast", "fast"),
        ("rejection_limit", "0", "rejection_limit"),
        ("lease", "soon", "lease"),
        ("format", "2", "format"),
        ("landings", "merge", "There is no setting landings."),
        ("command", "rm -rf /", "There is no setting command."),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    project: Project, key: str, text: str, words: str
) -> None:
    before = tip(project)
    with pytest.raises(UsageFault) as caught:
        configure.set_value(project, key, text)
    assert words in caught.value.message
    assert tip(project) == before


def test_a_near_name_is_proposed(project: Project) -> None:
    with pytest.raises(UsageFault) as caught:
        configure.value(project, "landings")
    assert caught.value.hint == "Did you mean landing?"


def test_a_text_is_edited_and_an_empty_one_is_removed(project: Project) -> None:
    configure.edit_text(project, "prompts/WORK", writing(b"Line\n"))
    assert shared(project, "prompts/WORK.md") == "Line"
    assert configure.value(project, "prompts/WORK.md") == "Line\n"

    seen: list[bytes] = []

    def clear(path: str) -> None:
        seen.append(Path(path).read_bytes())
        Path(path).write_bytes(b" \n")

    assert configure.edit_text(project, "prompts/WORK", clear).changed
    assert seen == [b"Line\n"]
    assert configure.value(project, "prompts/WORK") is None
    assert git(project.repo.common_dir, "ls-tree", "-r", "--name-only", "gittasks") == (
        "project.yaml"
    )


def test_a_text_is_removed_by_name(project: Project) -> None:
    configure.edit_text(project, "template", writing(b"x"))
    assert configure.unset(project, "template").changed
    assert configure.value(project, "template") is None


def test_a_text_that_cannot_be_taken_is_kept(project: Project) -> None:
    before = tip(project)
    with pytest.raises(UsageFault) as caught:
        configure.edit_text(project, "template", writing(b"\xff"))
    (kept,) = Path(project.state_dir, "edit").iterdir()
    assert str(kept) in str(caught.value.hint)
    assert tip(project) == before


@pytest.mark.parametrize("name", ["prompts", "../x", "prompts/a/b", "project.yaml", "prompts/", ""])
def test_only_the_template_and_prompts_are_texts(project: Project, name: str) -> None:
    with pytest.raises(UsageFault):
        configure.edit_text(project, name, lambda _path: None)


def test_only_the_manager_configures(project: Project) -> None:
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    before = tip(project)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: configure.set_value(agent, "lease", "1h"),
        lambda: configure.unset(agent, "template"),
        lambda: configure.edit_text(agent, "template", writing(b"")),
    )
    for attempt in attempts:
        with pytest.raises(WrongRole):
            attempt()
    assert tip(project) == before


def test_without_a_ledger_there_is_nothing_to_configure(home: Path) -> None:
    project = opened(make_repository(home / "project"))
    with pytest.raises(NoLedger):
        configure.values(project)
    with pytest.raises(NoLedger):
        configure.set_value(project, "lease", "1h")


def test_a_version_that_is_newer_than_the_tool_itself_is_not_asked_for(project: Project) -> None:
    with pytest.raises(UsageFault, match="is newer than this gittasks"):
        configure.set_value(project, "minimum_version", "999.1")


def test_a_ledger_that_asks_for_a_newer_tool_is_left_alone(tmp_path: Path) -> None:
    project = opened(make_repository(tmp_path / "newer"))
    project.ledger.create(config.Project(base="master", minimum_version="999.1"), "Ada")
    with pytest.raises(Corrupt, match=r"asks for gittasks 999\.1 or newer"):
        reopened(project).ledger.project()
