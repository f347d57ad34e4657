"""Tasks of other tools: what each file becomes, what is left out and why, and only once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from gittasks.domain.errors import UsageFault, WrongRole
from gittasks.workflow import create, export, trust, verify
from gittasks.workflow.create import New
from gittasks.workflow.importing import files, github, links, sources
from gittasks.workflow.importing.writer import Imported, Wish, bring
from gittasks.workflow.project import Project
from tests.support.git import git
from tests.workflow.ground import begun, reopened

pytestmark = pytest.mark.usefixtures("home")

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "importing"


@pytest.fixture
def project(home: Path) -> Project:
    return begun(home / "project")


def moves(project: Project) -> int:
    return len(git(project.repo.common_dir, "reflog", "refs/heads/gittasks").splitlines())


def counts(done: Imported) -> tuple[int, int, int, int, int]:
    return (
        len(done.created), len(done.known), len(done.closed), done.skipped, len(done.faults),
    )  # fmt: skip


def tasks(project: Project) -> list[tuple[Any, ...]]:
    """Returns what the tasks say, and what they keep of where they came from."""
    found = []
    for row in export.export(reopened(project)).tasks:
        kept = {name[11:]: value for name, value in row.items() if name.startswith("x-imported-")}
        kept.pop("from"), kept.pop("created", None)
        found.append((
            row["title"], row["labels"], row["priority"], row["assignee"], row["parent"],
            row["depends_on"], kept,
        ))  # fmt: skip
    return found


def lines(*rows: dict[str, Any] | bytes) -> bytes:
    return b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)


def issue(key: str, *needs: str, parent: str = "", **more: Any) -> dict[str, Any]:
    """Returns one issue of beads."""
    links = [{"depends_on_id": name, "type": "blocks"} for name in needs]
    links += [{"depends_on_id": parent, "type": "parent-child"}] if parent else []
    return {"id": key, "title": key, "status": "open", "dependencies": links, **more}


def planned(data: bytes, *known: str, **rules: bool) -> links.Plan:
    """Returns what becomes of issues of beads where these are in the ledger already."""
    dump = sources.read("issues", "issues", "beads", data)[1]
    return links.plan(
        dump, links.Rules(known=lambda key: key in known, closed=lambda _: False, **rules)
    )


def told(plan: links.Plan) -> list[tuple[str, str | None]]:
    return [(f"{fault.row}: {fault.message}", fault.key) for fault in plan.faults]


# What each source becomes.


def test_beads(project: Project) -> None:
    done = bring(project, str(FIXTURES / "beads"), "beads")
    assert (done.source, counts(done)) == ("beads", (4, 0, 1, 1, 0))
    assert tasks(project) == [
        ("Take payments", ["epic"], 1, None, None, [], {"id": "shop-k3x"}),
        ("Talk to the bank", ["backend", "money"], 0, "ann", "000001", [], {
            "id": "shop-k3x.1", "status": "in_progress", "url": "https://bank.example/ticket/9",
            "needs": ["shop-b7d"],
        }),
        ("Show the receipt", ["feature"], 2, None, "000001", ["000002"],
         {"id": "shop-k3x.2", "related": ["shop-q1a"]}),
        ("The total is wrong by one cent", ["bug"], 3, None, None, [], {"id": "shop-q1a"}),
    ]  # fmt: skip


def test_what_beads_keeps_beside_the_description_becomes_sections(project: Project) -> None:
    bring(project, str(FIXTURES / "beads"), "beads")
    assert reopened(project).ledger.graph().body("000002").decode() == (
        "Use their test account.\n\n"
        "## Design\n\nOne module, no state.\n\n"
        "## Acceptance criteria\n\n- [ ] A refused card is told in words\n\n"
        "## Notes\n\nThe contract is signed.\n\n"
        "## Comments\n\n### bob, 2026-03-03\n\n> Their manual is old.\n>\n> # Not a heading of ours\n"
    )


def test_backlog_md(project: Project) -> None:
    done = bring(project, str(FIXTURES), "here", "backlog")
    assert counts(done) == (3, 0, 1, 1, 0)
    assert tasks(project) == [
        ("Print the catalogue", ["paper", "milestone:spring"], 1, None, None, [], {"id": "TASK-1"}),
        ("Pictures: take them", [], 3, "ann", "000001", [], {
            "id": "TASK-1.1", "status": "In Progress", "assignees": ["bob"], "needs": ["TASK-3"],
        }),
        ("Send it out", [], 2, None, None, ["000001", "000002"], {"id": "TASK-2"}),
    ]  # fmt: skip
    assert reopened(project).ledger.graph().body("000001").decode() == (
        "## Description\n\nTwo hundred pages, in colour.\n\n## Acceptance Criteria\n"
        "- [ ] #1 Every article has a picture\n- [x] #2 Prices are those of April\n"
    )


def test_tickets(project: Project) -> None:
    done = bring(project, str(FIXTURES / "ticket"), "here")
    assert (done.source, counts(done)) == ("ticket", (3, 0, 1, 0, 0))
    assert tasks(project) == [
        ("Move the depot", ["epic"], 1, None, None, [], {"id": "ca-1f0e", "related": ["ca-77aa"]}),
        ("Carry the shelves", ["depot", "heavy"], 0, "Wim Worker", "000001", [], {
            "id": "ca-0042", "status": "in_progress", "reference": "gh-12", "needs": ["ca-9b3c"],
        }),
        ("The door does not close", ["bug"], 4, None, None, ["000002"],
         {"id": "ca-77aa", "related": ["ca-1f0e"]}),
    ]  # fmt: skip


def test_github(project: Project) -> None:
    done = bring(project, str(FIXTURES / "github" / "issues.json"), "issues.json")
    assert (done.source, counts(done)) == ("github", (3, 0, 1, 1, 0))
    url = "https://github.com/ann/shop/issues"
    assert tasks(project) == [
        ("Search", ["P1"], 1, None, None, [], {"id": "ann/shop#10", "url": f"{url}/10"}),
        ("Index the articles again", [], 2, None, "000001", [],
         {"id": "ann/shop#12", "url": f"{url}/12"}),
        ("Search finds nothing with an umlaut", ["bug", "priority: high", "milestone:Summer"], 1,
         "ann", None, ["000002"], {
            "id": "ann/shop#14", "url": f"{url}/14", "assignees": ["bob"],
            "needs": ["ann/shop#9", "ann/oil#3"],
        }),
    ]  # fmt: skip
    assert reopened(project).ledger.graph().body("000003").decode() == (
        "Type `Öl` and see.\n\nDepends on #12, #9\n- blocked by ann/oil#3\n\n"
        "## Comments\n\n### bob, 2026-04-03\n\n> Seen here, too.\n> ---\n> state: CLOSED\n"
    )


def test_what_the_interface_of_github_answers_is_read_page_by_page() -> None:
    page = {"html_url": "https://github.com/a/b/issues/2", "number": 2, "title": "Two",
            "state": "open", "comments": 7, "user": {"login": "ann"}, "labels": ["p0"],
            "parent_issue_url": "https://api.github.com/repos/a/b/issues/1"}  # fmt: skip
    last = {"number": 1, "title": "One", "html_url": "https://github.com/a/b/issues/1"}
    text = json.dumps([page]) + "\n" + json.dumps([last]) + '\n[{"number": 3, "tit'
    dump = github.read(text.encode(), "pages")
    assert [(one.key, one.row, one.parent, one.priority) for one in dump.items] == [
        ("a/b#1", 2, None, 2), ("a/b#2", 1, "a/b#1", 0),
    ]  # fmt: skip
    assert [(fault.row, fault.message[:20]) for fault in dump.faults] == [
        (3, "This is no JSON: Unt"),
    ]  # fmt: skip


# Once, and all at once.


def test_all_of_it_is_one_move_and_again_it_is_none(project: Project) -> None:
    before = moves(project)
    first = bring(project, str(FIXTURES / "beads"), "beads")
    again = bring(reopened(project), str(FIXTURES / "beads"), "beads")
    assert moves(project) - before == 1
    assert [one.id for one in first.created] == ["000001", "000002", "000003", "000004"]
    assert (counts(again), again.known) == ((0, 4, 1, 1, 0), first.created)


def test_a_newer_file_adds_what_is_new_and_its_links_hold(project: Project) -> None:
    bring(project, "-", "stdin", data=lines(issue("a"), issue("b", "a")))
    bring(reopened(project), "-", "stdin", data=lines(issue("c", "b", parent="A"), issue("a")))
    assert [(row[0], row[4], row[5]) for row in tasks(project)] == [
        ("a", None, []), ("b", None, ["000001"]), ("c", "000001", ["000002"]),
    ]  # fmt: skip


def test_a_key_tells_projects_apart_whose_ids_are_alike(project: Project) -> None:
    bring(project, "-", "stdin", data=lines(issue("a")))
    done = bring(
        reopened(project), "-", "stdin", data=lines(issue("a")), wish=Wish(idempotency_key="other")
    )
    assert [one.id for one in done.created] == ["000002"]


def test_a_look_writes_nothing(project: Project) -> None:
    before = moves(project)
    done = bring(project, str(FIXTURES / "beads"), "beads", wish=Wish(dry_run=True))
    assert (counts(done), {one.id for one in done.created}) == ((4, 0, 1, 1, 0), {None})
    assert moves(project) == before


def test_nothing_stands_below_what_was_closed_here(project: Project) -> None:
    from gittasks.workflow import abort

    bring(project, "-", "stdin", data=lines(issue("a")))
    abort.abort(reopened(project), "000001")
    bring(reopened(project), "-", "stdin", data=lines(issue("a"), issue("b", parent="a")))
    assert tasks(project)[1][4:] == (None, [], {"id": "b", "parent": "a"})


def test_closed_ones_come_as_aborted_when_asked_for(project: Project) -> None:
    data = lines(
        issue("top", status="closed", close_reason="done"), issue("low", parent="top", status="closed"),
        issue("open", "top", parent="top"),
    )  # fmt: skip
    bring(project, "-", "stdin", data=data, wish=Wish(everything=True))
    found = [reopened(project).task(f"00000{number}") for number in (1, 2, 3)]
    assert [(one.title, one.state, one.outcome, one.parent, one.depends_on) for one in found] == [
        ("top", "CLOSED", "aborted", None, ()), ("low", "CLOSED", "aborted", "000001", ()),
        ("open", "NEW", None, None, ()),
    ]  # fmt: skip


# Faults.


def test_every_fault_is_told_by_row_and_the_rest_comes() -> None:
    plan = planned(
        lines(
            issue("good", "also"), b"{no json", b"[1]", {"id": "x", "status": "open"},
            issue("long", title="x" * 501), issue("lost", "nowhere"), issue("user", "lost"),
            b'{"id": "\xff"}', issue("also"), issue("ALSO"), issue("self", "self"),
            issue("child", "long"), issue("kind", labels=3), issue("two", title="a\nb"),
            issue("half", title="\ud800"),
        )
    )  # fmt: skip
    assert [one.item.key for one in plan.new] == ["good", "also"]
    assert told(plan) == [
        ("2: This is no JSON: Expecting property name enclosed in double quotes;"
         " correct the line.", None),
        ("3: This is no JSON object; correct the line.", None),
        ("4: The title is missing; give it one.", "x"),
        ("5: The title has 501 characters, and 500 are allowed; put the rest into the text.",
         "long"),
        ("6: There is no nowhere here, nor was it imported before; correct the link.", "lost"),
        ("7: It needs lost, which has a fault itself.", "user"),
        ("8: This is not UTF-8; convert it, for example with iconv -t utf-8.", None),
        ("10: The id ALSO stands in line 9 already; give one of them another id.", "ALSO"),
        ("11: It points at itself; remove the link.", "self"),
        ("12: It needs long, which has a fault itself.", "child"),
        ("13: The field labels is no list, but 3; correct it.", "kind"),
        ("14: The title has more than one line, or letters that are none; correct it.", "two"),
        ("15: The title has more than one line, or letters that are none; correct it.", "half"),
    ]  # fmt: skip


def test_what_no_document_could_hold_is_a_fault_of_its_row() -> None:
    many = [issue(str(number)) for number in range(1001)]
    plan = planned(
        lines(
            *many, issue("needy", *(row["id"] for row in many)),
            issue("wordy", labels=["x" * 70_000]), issue("long", description="x" * 4 * 1024 * 1024),
        )
    )  # fmt: skip
    assert [(message.partition(": ")[2], key) for message, key in told(plan)] == [
        ("It needs more than 1000 others; group some of them below a parent.", "needy"),
        ("The fields beside the text are too long; shorten them.", "wordy"),
        ("The text is longer than a document may be; shorten it.", "long"),
    ]


def test_a_ring_is_told_to_each_of_its_rows() -> None:
    plan = planned(
        lines(issue("a", "b"), issue("b", "c"), issue("c", "a"), issue("d", "e"), issue("e"))
    )
    assert [one.item.key for one in plan.new] == ["d", "e"]
    assert [key for _, key in told(plan)] == ["a", "b", "c"]
    assert all(" in a ring of " in message for message, _ in told(plan))


def test_what_waits_for_its_own_parent_is_a_ring() -> None:
    plan = planned(
        lines(issue("top"), issue("mid", parent="top"), issue("low", "top", parent="mid"))
    )
    assert ([one.item.key for one in plan.new], [key for _, key in told(plan)]) == (
        ["top", "mid"], ["low"],
    )  # fmt: skip


def test_what_stands_below_itself_is_left_out() -> None:
    plan = planned(lines(issue("a", parent="b"), issue("b", parent="a"), issue("c")))
    assert [one.item.key for one in plan.new] == ["c"]
    assert told(plan) == [
        ("1: It stands below b, and that below it; correct its parent.", "a"),
        ("2: It stands below a, and that below it; correct its parent.", "b"),
    ]


def test_links_that_do_not_hold_can_be_kept_as_words(project: Project) -> None:
    data = lines(issue("a", "b", "nowhere"), issue("b", "a"), issue("c", parent="c"), b"{")
    done = bring(project, "-", "stdin", "beads", data=data, wish=Wish(drop_links=True))
    assert counts(done) == (3, 0, 0, 0, 1)
    assert [(row[0], *row[4:]) for row in tasks(project)] == [
        ("a", None, [], {"id": "a", "needs": ["nowhere", "b"]}),
        ("b", None, [], {"id": "b", "needs": ["a"]}),
        ("c", None, [], {"id": "c", "parent": "c"}),
    ]


def test_a_link_of_what_is_here_already_is_no_fault() -> None:
    plan = planned(lines(issue("a", "nowhere"), issue("b", "a")), "a")
    assert ([one.item.key for one in plan.new], plan.faults) == (["b"], [])


def test_thousands_in_a_row_are_no_trouble() -> None:
    rows = [issue(str(n), *([str(n - 1)] if n else []), parent=str(n + 1)) for n in range(3000)]
    plan = planned(lines(*rows, issue("3000")))
    assert (len(plan.new), len(plan.faults)) == (3001, 0)


def test_a_bad_header_costs_only_its_file(home: Path, project: Project) -> None:
    folder = home / ".tickets"
    shutil.copytree(FIXTURES / "ticket" / ".tickets", folder)
    (folder / "a.md").write_text("---\nid: [\n---\n# A\n")
    (folder / "b.md").write_text("---\nid: b\n---\nno title\n")
    (folder / "c.md").write_text("# C\n")
    (folder / "d.md").write_bytes(b"---\nid: d\n---\n# \xff\n")
    (folder / "e.md").write_text("---\nid: e\ntags:\n" + "- " * 5000 + "\n---\n# E\n")
    (folder / "f.md").symlink_to(home / "secret")
    os.mkfifo(folder / "g.md")
    layers = "".join(f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]\n" for n in range(1, 100))
    (folder / "ga.md").write_text(f"---\nid: ga\nk0: &k0 a\n{layers}tags: *k99\n---\n# A\n")
    with (folder / "h.md").open("wb") as file:
        file.truncate(files.FILE_LIMIT + 1)
    done = bring(project, str(home), "here")
    assert (counts(done)[0], [(fault.file, fault.message) for fault in done.faults]) == (3, [
        ("here/.tickets/a.md", "The header is no YAML at line 2; correct it."),
        ("here/.tickets/b.md", "The title is missing; begin the text with a line `# Title`."),
        ("here/.tickets/c.md", "There is no header; begin the file with a line of three dashes."),
        ("here/.tickets/d.md", "This is not UTF-8; convert it, for example with iconv -t utf-8."),
        ("here/.tickets/e.md", "The header is nested too deeply; write plain fields."),
        ("here/.tickets/f.md",
         "This is a link, and links are not followed; put the file itself here."),
        ("here/.tickets/g.md", "This is no plain file; remove it."),
        ("here/.tickets/ga.md", "The field tags is no text, but a list; correct it."),
        ("here/.tickets/h.md", "The file is longer than 4 MiB; shorten it."),
    ])  # fmt: skip


def test_a_file_of_many_tasks_has_a_limit_too(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(files.DUMP_LIMIT + 1)
    with pytest.raises(UsageFault, match="longer than 64 MiB"):
        sources.read(str(tmp_path / "huge"), "huge", "beads")


# Where it comes from.


def test_a_folder_of_two_tools_is_ambiguous(home: Path) -> None:
    for name in ("backlog/tasks", ".tickets"):
        (home / "both" / name).mkdir(parents=True)
    with pytest.raises(UsageFault, match=r"both holds tasks of Backlog.md and ticket.") as refusal:
        sources.read(str(home / "both"), "both")
    assert refusal.value.hint == "Give --from backlog or --from ticket."


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "nothing that can be imported"),
        ("beads", "nothing of beads"),
        ("backlog", "nothing of Backlog.md"),
        ("github", "nothing of GitHub"),
    ],
)
def test_an_empty_folder_is_nothing(home: Path, source: Any, message: str) -> None:
    with pytest.raises(UsageFault, match=message):
        sources.read(str(home), "here", source)


def test_a_file_is_known_by_its_first_readable_row() -> None:
    data = b"{broken\n" + lines(issue("a"))
    assert sources.read("-", "stdin", None, data)[0] == "beads"


def test_only_the_manager_imports(project: Project) -> None:
    agent = reopened(project, environ={"GITTASKS_AGENT": "bot"})
    with pytest.raises(WrongRole):
        bring(agent, str(FIXTURES / "beads"), "beads")


# Hostile texts, and our own.


def test_hostile_texts_stay_texts(project: Project) -> None:
    evil = '"\nstate: CLOSED\nchecks: ["rm -rf ~"]\n---\n\u202e\x1b[2J'
    row = issue(
        "e", title="--- #{$(id)}`id`", description=f"---\n{evil}", labels=[evil], assignee=evil,
        external_ref=evil, checks=["rm -rf ~"], status=evil,
    )  # fmt: skip
    done = bring(project, "-", "stdin", data=lines(row))
    task = reopened(project).task("000001")
    assert (counts(done), task.title, task.state, task.checks) == (
        (1, 0, 0, 0, 0), "--- #{$(id)}`id`", "NEW", (),
    )  # fmt: skip
    assert verify.fsck(reopened(project)).findings == ()


def test_what_was_exported_comes_back_as_it_was(home: Path, project: Project) -> None:
    create.create(project, New("One", body=b"---\nid: 7\n---\r\n\xff\n", labels=["a  b"]))
    create.create(
        project, New("Two", checks=["make  test"], depends_on=["1"], parent="1", priority=4)
    )
    rows = list(export.export(reopened(project)).tasks)
    rows[0] |= {"x-number": 5, "x-text": "5", "x-list": ["a"], "x-word": "word"}
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    other = begun(home / "other")
    done = bring(other, "-", "stdin", data=data)
    changing = {"created_at", "entered_at"}
    found = list(export.export(reopened(other)).tasks)
    assert (done.source, counts(done)) == ("gittasks", (2, 0, 0, 0, 0))
    assert [{k: v for k, v in row.items() if k not in changing} for row in found] == [
        {k: v for k, v in row.items() if k not in changing} for row in rows
    ]
    assert trust.approvals(reopened(other)) == ()


def test_what_was_exported_is_here_already(project: Project) -> None:
    create.create(project, New("One"))
    data = json.dumps(next(export.export(reopened(project)).tasks)).encode()
    assert counts(bring(reopened(project), "-", "stdin", data=data)) == (0, 1, 0, 0, 0)
