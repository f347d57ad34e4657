"""The manager's last submit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gittasks.domain.errors import Busy, CheckFailed, Refused, WrongRole
from gittasks.domain.requests import Edit, Landing, Submit
from gittasks.plumbing.processes import process_identity
from gittasks.workflow import claim, configure, feedback, land, submit, trust
from gittasks.workspaces import records
from tests.support.scenarios import CHECKOUT
from tests.workflow.ground import opened
from tests.workflow.landings import Scene

TASK = "000001"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "repo")


def set_mode(scene: Scene, mode: str) -> None:
    configure.set_value(scene.manager, "landing", mode)


def unchanged(scene: Scene, before: str) -> bool:
    """Tells whether a refusal left base, task, branch and files as they were."""
    return (scene.master(), scene.state(TASK), scene.traces()) == (before, "MANAGER_REVIEW", [])


def test_a_reviewed_task_lands_with_a_merge_commit(scene: Scene) -> None:
    scene.new(TASK)
    base = scene.master()
    tip = scene.reviewed(TASK, {"a.txt": "one\n"})
    outcome = scene.land(TASK)
    landed = scene.master()
    assert scene.git("show", "-s", "--format=%P%n%B", landed).rstrip("\n") == (
        f"{base} {tip}\n000001: Task 1\n\nTask: 000001"
    )
    assert (outcome.source, outcome.target) == ("MANAGER_REVIEW", "CLOSED")
    task = scene.manager.task(TASK)
    assert (task.state, task.outcome, task.landed) == ("CLOSED", "landed", landed)
    assert (scene.folder / "a.txt").read_text() == "one\n"
    assert scene.git("status", "--porcelain") == ""
    assert scene.git("branch", "--list", "task/*") == ""
    assert (scene.tree(TASK).exists(), scene.traces()) == (False, [])
    assert records.all(scene.manager.state_dir) == ()


def test_landing_again_is_nothing_to_do(scene: Scene) -> None:
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n"})
    scene.land(TASK)
    before = scene.git("rev-parse", "gittasks", "master")
    outcome = land.land(scene.manager, TASK)
    assert (outcome.changed, scene.git("rev-parse", "gittasks", "master")) == (False, before)


def test_a_landing_unblocks_who_waited_for_it(scene: Scene) -> None:
    scene.new(TASK)
    scene.new("000002", depends_on=(TASK,))
    scene.reviewed(TASK, {"a.txt": "one\n"})
    assert scene.land(TASK).unblocked == ("000002",)
    assert scene.state("000002") == "WORK"


def test_the_user_s_other_changes_stay_as_they_are(scene: Scene) -> None:
    scene.commit(scene.folder, {"b.txt": "b\n", "c.txt": "c\n"})
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n"})
    (scene.folder / "b.txt").write_text("mine\n")
    (scene.folder / "c.txt").write_text("mine\n")
    scene.git("add", "c.txt")
    scene.land(TASK)
    assert scene.git("status", "--porcelain") == " M b.txt\nM  c.txt"
    assert (scene.folder / "a.txt").read_text() == "one\n"
    assert scene.git("stash", "list") == ""


def test_another_branch_in_the_checkout_stays_where_it_is(scene: Scene) -> None:
    scene.git("switch", "-q", "-c", "side")
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n"})
    side = scene.git("rev-parse", "side")
    scene.land(TASK)
    assert (scene.git("rev-parse", "side"), scene.git("status", "--porcelain")) == (side, "")
    assert scene.git("show", "master:a.txt") == "one"


def test_green_alone_and_red_together_is_refused_and_sent_back(scene: Scene) -> None:
    total = (
        'sum=0; for n in $(cat *.num); do sum=$((sum+n)); done; echo "sum $sum"; test $sum -lt 10'
    )
    scene.new(TASK, total)
    scene.new("000002", total)
    scene.reviewed(TASK, {"one.num": "6\n"})
    tip = scene.reviewed("000002", {"two.num": "7\n"})
    scene.land(TASK)
    master = scene.master()
    with pytest.raises(CheckFailed) as failed:
        scene.land("000002")
    assert f"`{total}`: exit code 1\n    sum 13" in failed.value.message
    assert (scene.master(), scene.state("000002")) == (master, "MANAGER_REVIEW")
    feedback.feedback(scene.manager, "000002", from_landing=True)
    findings = scene.manager.task("000002").findings
    assert findings is not None
    assert (scene.state("000002"), findings.items) == ("WORK", (failed.value.message,))
    assert scene.git("rev-parse", "task/000002") == tip
    assert scene.traces() == []


def test_a_conflict_is_refused_and_lands_after_it_was_resolved(scene: Scene) -> None:
    scene.new(TASK)
    scene.new("000002")
    scene.reviewed(TASK, {"app.txt": "first\n"})
    scene.reviewed("000002", {"app.txt": "second\n"})
    scene.land(TASK)
    master = scene.master()
    with pytest.raises(CheckFailed, match=r"task/000002 conflicts with the base in app\.txt\."):
        scene.land("000002")
    assert (scene.master(), scene.state("000002"), scene.traces()) == (
        master, "MANAGER_REVIEW", [],
    )  # fmt: skip
    assert not list(scene.folder.parent.rglob("MERGE_HEAD"))
    feedback.feedback(scene.manager, "000002", from_landing=True)
    tree = scene.started("000002")
    scene.git("merge", "-q", "master", at=tree, check=False)
    scene.commit(tree, {"app.txt": "both\n"}, "Merge the base")
    scene.submitted("000002")
    claim.claim(scene.agent("pi-2", "reviewer"), "000002")
    submit.submit(scene.agent("pi-2", "reviewer"), "000002")
    scene.land("000002")
    assert (scene.folder / "app.txt").read_text() == "both\n"


def test_a_refusal_of_an_earlier_round_is_not_given_again(scene: Scene) -> None:
    scene.new(TASK, "false")
    tip = scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    project = scene.manager
    file = Path(project.state_dir, "refused", f"{TASK}.json")
    records.write_json(str(file), {"text": "It fails.", "tip": "0" * 40})
    stale = records.refusal(project.state_dir, TASK, project.task(TASK).submitted_tip)
    records.write_json(str(file), {"text": "It fails.", "tip": None})
    assert (
        stale,
        records.refusal(project.state_dir, TASK, project.task(TASK).submitted_tip),
        bool(tip),
    ) == (None, "It fails.", True)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("moved", "was checked and reviewed"),
        ("gone", "does not exist"),
        ("untracked", "stand untracked in"),
        ("changed", "cannot follow the base"),
        ("merging", "a merge is in progress"),
        ("untrusted", "not approved in this clone"),
    ],
)
def test_what_stands_in_the_way_is_refused_and_nothing_moves(
    scene: Scene, case: str, message: str
) -> None:
    scene.new(TASK, "true")
    scene.reviewed(TASK, {"a.txt": "one\n", "app.txt": "work\n"})
    match case:
        case "moved":
            scene.commit(scene.tree(TASK), {"a.txt": "after the review\n"})
        case "gone":
            scene.git("update-ref", "-d", f"refs/heads/task/{TASK}")
        case "untracked":
            (scene.folder / "a.txt").write_text("mine\n")
        case "changed":
            (scene.folder / "app.txt").write_text("mine\n")
        case "merging":
            (scene.folder / ".git" / "MERGE_HEAD").write_text(scene.master() + "\n")
        case _:
            trust.revoke(scene.manager, None)
    before = scene.master()
    with pytest.raises(Refused, match=message):
        scene.land(TASK)
    assert unchanged(scene, before)


def test_only_the_manager_lands(scene: Scene) -> None:
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n"})
    with pytest.raises((WrongRole, Refused)):
        land.land(scene.agent("pi-1", "worker"), TASK)
    assert unchanged(scene, scene.git("rev-parse", "master"))


def test_a_task_of_an_agent_does_not_land(scene: Scene) -> None:
    scene.new(TASK)
    scene.worked(TASK, {"a.txt": "one\n"})
    before = scene.git("rev-parse", "gittasks", "master")
    with pytest.raises(Refused):
        land.land(scene.manager, TASK)
    assert scene.git("rev-parse", "gittasks", "master") == before


def test_an_open_dependency_refuses_before_the_checks_run(scene: Scene) -> None:
    scene.new(TASK, "touch ../../../checked")
    scene.new("000002")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    (scene.folder.parent / "checked").unlink(missing_ok=True)
    project = scene.manager
    request = Edit(TASK, add_dependencies=("000002",))
    project.apply(request, project.speaker("edit"))
    with pytest.raises(Refused, match="000002"):
        scene.land(TASK)
    assert not list(scene.folder.parent.rglob("checked"))


def test_a_missing_tree_is_no_reason_to_skip_the_checks(scene: Scene) -> None:
    scene.new(TASK, "test ! -e broken.txt")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    scene.commit(scene.folder, {"broken.txt": "x\n"})
    subprocess.run(["rm", "-rf", scene.tree(TASK)], check=True)
    before = scene.master()
    with pytest.raises(CheckFailed, match="fail on the result of merging it into master"):
        scene.land(TASK)
    assert unchanged(scene, before)


def test_a_tip_merged_by_hand_closes_with_the_commit_that_brought_it(scene: Scene) -> None:
    scene.new(TASK, "test -e a.txt")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    scene.git("merge", "-q", "--no-ff", "-m", "By hand", f"task/{TASK}")
    landed = scene.master()
    after = scene.commit(scene.folder, {"b.txt": "two\n"})
    scene.land(TASK)
    task = scene.manager.task(TASK)
    assert (task.outcome, task.landed, scene.master()) == ("landed", landed, after)
    assert (scene.git("branch", "--list", "task/*"), scene.traces()) == ("", [])


def test_what_was_merged_by_hand_is_checked_on_the_base(scene: Scene) -> None:
    scene.new(TASK, "test ! -e broken.txt")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    scene.git("merge", "-q", "--no-ff", "-m", "By hand", f"task/{TASK}")
    before = scene.commit(scene.folder, {"broken.txt": "x\n"})
    with pytest.raises(CheckFailed):
        scene.land(TASK)
    assert unchanged(scene, before)


@pytest.mark.parametrize(("mode", "subject"), [("rebase", "Work"), ("squash", "000001: Task 1")])
def test_other_modes_make_one_line_and_keep_the_branch(
    scene: Scene, mode: str, subject: str
) -> None:
    set_mode(scene, mode)
    scene.new(TASK, "test -e a.txt -a -e b.txt")
    tree = scene.started(TASK)
    tip = scene.commit(tree, {"a.txt": "one\n", "b.txt": "one\n"})
    scene.submitted(TASK)
    claim.claim(scene.agent("pi-2", "reviewer"), TASK)
    submit.submit(scene.agent("pi-2", "reviewer"), TASK)
    base = scene.commit(scene.folder, {"c.txt": "two\n"})
    scene.land(TASK)
    assert scene.git("show", "-s", "--format=%P|%s", "master") == f"{base}|{subject}"
    assert scene.git("rev-parse", f"refs/gittasks/landed/{TASK}") == tip
    assert (scene.git("status", "--porcelain"), scene.traces()) == ("", [])


def test_what_nobody_committed_in_the_tree_is_kept_and_told(scene: Scene) -> None:
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n", ".gitignore": "*.log\n"})
    (scene.tree(TASK) / "run.log").write_text("precious\n")
    notes = scene.land(TASK).notes
    kept = Path(notes[0].removeprefix("Files that git ignores are kept in ").removesuffix("."))
    assert (kept / "files" / "run.log").read_text() == "precious\n"


def test_a_branch_somebody_reviews_in_another_checkout_stays_and_is_told(
    scene: Scene, tmp_path: Path
) -> None:
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n"})
    scene.git("worktree", "add", "-q", "-f", str(tmp_path / "look"), f"task/{TASK}")
    outcome = scene.land(TASK)
    assert outcome.notes == (
        f"The branch task/{TASK} stays: it is checked out in {tmp_path}/look.",
    )
    assert scene.state(TASK) == "CLOSED"


def test_a_base_that_moves_while_the_checks_run_is_merged_again(scene: Scene) -> None:
    # The check moves the base the first time it runs, and not again.
    move = (
        f"test -e {scene.folder}/../moved || "
        f"{{ touch {scene.folder}/../moved; cd {scene.folder}; "
        "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m More; }"
    )
    scene.new(TASK, "true")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    project = scene.manager
    project.apply(Edit(TASK, set=(("checks", (move,)),)), project.speaker("edit"))
    trust.approve_own(project, (move,), "Ada")
    scene.land(TASK)
    assert scene.git("log", "-3", "--first-parent", "--format=%s", "master") == (
        "000001: Task 1\nMore\nStart"
    )


def test_a_base_that_moves_every_time_is_told_to_try_again(scene: Scene) -> None:
    move = (
        f"cd {scene.folder}; git -c user.name=A -c user.email=a@b commit -q --allow-empty -m More"
    )
    scene.new(TASK, "true")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    project = scene.manager
    project.apply(Edit(TASK, set=(("checks", (move,)),)), project.speaker("edit"))
    trust.approve_own(project, (move,), "Ada")
    with pytest.raises(Busy, match="moved 3 times"):
        scene.land(TASK)
    assert unchanged(scene, scene.master())
    assert scene.git("log", "--format=%s", "master") == "More\nMore\nMore\nStart"


def test_a_foreseen_landing_moves_nothing(scene: Scene) -> None:
    scene.new(TASK, "true")
    scene.new("000002", depends_on=(TASK,))
    tip = scene.reviewed(TASK, {"a.txt": "one\n"})
    before = scene.git("for-each-ref")
    outcome = submit.submit(scene.manager, TASK, dry_run=True)
    assert (outcome.target, outcome.unblocked, outcome.changed) == ("CLOSED", ("000002",), False)
    assert outcome.extra == {
        "dry_run": True, "base": scene.master(), "tip": tip, "mode": "merge",
    }  # fmt: skip
    assert scene.git("for-each-ref") == before


def test_other_verbs_of_this_clone_wait_while_a_task_lands(scene: Scene) -> None:
    scene.new(TASK)
    scene.reviewed(TASK, {"a.txt": "one\n"})
    with subprocess.Popen(["sleep", "60"]) as other:
        write_record(scene, other.pid, "")
        with pytest.raises(Busy, match=f"is landing right now \\(process {other.pid}\\)"):
            feedback.feedback(scene.manager, TASK, ["No."])
        other.kill()
        other.wait()
    assert feedback.feedback(scene.manager, TASK, ["No."]).target == "WORK"
    assert scene.traces() == []


def test_two_managers_at_once_land_a_task_once(scene: Scene) -> None:
    scene.new(TASK, "sleep 0.3")
    scene.reviewed(TASK, {"a.txt": "one\n"})
    code = (
        "import sys; from gittasks.workflow import submit\n"
        "from pathlib import Path; from tests.workflow.ground import opened\n"
        "print(submit.submit(opened(Path(sys.argv[1])), sys.argv[2]).changed)"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(scene.folder), TASK],
            cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=60)[0] for process in running]
    assert sorted(line.strip() for line in said) in (["False", "True"], ["", "True"])
    log = scene.git("log", "--first-parent", "--format=%s", "master")
    assert log == "000001: Task 1\nStart"


def write_record(scene: Scene, pid: int, commit: str, **more: object) -> records.LandingRecord:
    """Writes the record of a landing as a process would leave it; pid 0 is one that died."""
    project = scene.manager
    task = project.task(TASK)
    record = records.LandingRecord(
        task=TASK,
        uid=task.uid,
        base="refs/heads/master",
        base_old=scene.master(),
        tip=scene.git("rev-parse", f"task/{TASK}"),
        commit=commit,
        mode="merge",
        branch=task.branch,
        process=process_identity(pid) if pid else (999_999_999, "long ago"),
        actor="Ada",
    )._replace(**more)  # type: ignore[arg-type]
    records.write_landing(project.state_dir, record)
    return record


def prepared(scene: Scene) -> tuple[str, str]:
    """Brings a task to MANAGER_REVIEW and makes the commit of its landing; returns old and new."""
    scene.new(TASK)
    tip = scene.reviewed(TASK, {"a.txt": "one\n"})
    old = scene.master()
    tree = scene.git("merge-tree", "--write-tree", old, tip)
    new = scene.git("commit-tree", tree, "-p", old, "-p", tip, "-m", "000001: Task 1")
    scene.git("update-ref", f"refs/gittasks/landing/{TASK}", new)
    return old, new


def note(scene: Scene) -> None:
    """Writes something, as any next command does."""
    scene.new("000002")


def landed(scene: Scene) -> tuple[object, ...]:
    task = scene.manager.task(TASK)
    return (
        task.outcome,
        task.landed,
        scene.master(),
        scene.git("status", "--porcelain"),
        scene.git("branch", "--list", "task/*"),
        scene.traces(),
    )


def test_a_landing_that_died_before_the_step_is_undone(scene: Scene) -> None:
    old, new = prepared(scene)
    write_record(scene, 0, new)
    note(scene)
    assert unchanged(scene, old)


def test_a_landing_that_died_at_its_beginning_is_undone_with_its_spare_tree(scene: Scene) -> None:
    old, _ = prepared(scene)
    scene.git("update-ref", "-d", f"refs/gittasks/landing/{TASK}")
    spare = Path(scene.manager.worktree_root, f"landing-{TASK}", "tree")
    scene.git("worktree", "add", "-q", "--detach", "--lock", str(spare))
    write_record(scene, 0, "")
    note(scene)
    assert unchanged(scene, old)
    assert str(spare) not in scene.git("worktree", "list")


@pytest.mark.parametrize("mode", ["by hand", "rebase"])
def test_a_landing_that_leaves_the_base_where_it_is_is_never_completed_unchecked(
    scene: Scene, mode: str
) -> None:
    old, _ = prepared(scene)
    scene.git("update-ref", f"refs/gittasks/landing/{TASK}", old)
    write_record(scene, 0, old, mode=mode)
    note(scene)
    assert unchanged(scene, old)


def test_a_landing_of_which_only_the_base_moved_is_completed(scene: Scene) -> None:
    old, new = prepared(scene)
    write_record(scene, 0, new)
    scene.git("update-ref", "refs/heads/master", new, old)
    note(scene)
    assert landed(scene) == ("landed", new, new, "", "", [])


def test_a_landing_whose_base_was_built_upon_is_completed(scene: Scene) -> None:
    old, new = prepared(scene)
    write_record(scene, 0, new)
    scene.git("merge", "-q", "--ff-only", new)
    after = scene.commit(scene.folder, {"b.txt": "more\n"})
    note(scene)
    assert (landed(scene), old != after) == (("landed", new, after, "", "", []), True)


def test_a_moved_base_goes_back_where_the_task_may_no_longer_land(scene: Scene) -> None:
    old, new = prepared(scene)
    scene.new("000002")
    project = scene.manager
    project.apply(Edit(TASK, add_dependencies=("000002",)), project.speaker("edit"))
    write_record(scene, 0, new)
    scene.git("update-ref", "refs/heads/master", new, old)
    land.recover_landings(scene.manager)
    assert unchanged(scene, old)
    assert scene.git("status", "--porcelain") == ""


def close(scene: Scene, record: records.LandingRecord) -> None:
    """Closes the task in the ledger as the step does, without moving any other ref."""
    project = scene.manager
    request = Submit(TASK, landing=Landing(record.tip, record.commit, "merge"))
    records.drop_landing(project.state_dir, TASK)
    project.apply(request, project.speaker("submit"))
    records.write_landing(project.state_dir, record)


def test_a_landing_of_which_only_the_ledger_moved_is_completed(scene: Scene) -> None:
    _, new = prepared(scene)
    close(scene, write_record(scene, 0, new))
    note(scene)
    assert landed(scene) == ("landed", new, new, "", "", [])


def test_a_base_that_went_elsewhere_meanwhile_is_told_and_the_commit_held(scene: Scene) -> None:
    _, new = prepared(scene)
    close(scene, write_record(scene, 0, new))
    other = scene.commit(scene.folder, {"b.txt": "more\n"})
    said = land.recover_landings(scene.manager)
    assert said == (
        f"The landing of {TASK} was cut short, and master has moved on since. "
        f"Merge it yourself: git merge {new}.",
    )
    assert (scene.master(), scene.git("rev-parse", f"refs/gittasks/landing/{TASK}")) == (other, new)


def test_a_landing_that_died_after_the_step_brings_the_checkout_along(scene: Scene) -> None:
    old, new = prepared(scene)
    close(scene, write_record(scene, 0, new))
    scene.git("update-ref", "refs/heads/master", new, old)
    note(scene)
    assert landed(scene) == ("landed", new, new, "", "", [])
    assert (scene.folder / "a.txt").read_text() == "one\n"


def test_a_checkout_that_could_not_follow_is_brought_along_when_the_way_is_clear(
    scene: Scene,
) -> None:
    old, new = prepared(scene)
    close(scene, write_record(scene, 0, new))
    scene.git("update-ref", "refs/heads/master", new, old)
    (scene.folder / "a.txt").mkdir()
    (scene.folder / "a.txt" / "mine").write_text("mine\n")
    said = land.recover_landings(scene.manager)
    assert [f"read-tree -m -u {old} {new}" in line for line in said] == [False, True]
    (scene.folder / "a.txt" / "mine").unlink()
    (scene.folder / "a.txt").rmdir()
    note(scene)
    assert landed(scene) == ("landed", new, new, "", "", [])


def test_a_living_landing_is_left_alone(scene: Scene) -> None:
    _, new = prepared(scene)
    with subprocess.Popen(["sleep", "60"]) as other:
        write_record(scene, other.pid, new)
        note(scene)
        traces = scene.traces()
        other.kill()
    assert traces == [f"{TASK}.json", f"refs/gittasks/landing/{TASK}"]


def test_a_lock_file_of_a_killed_git_does_not_stop_the_recovery(scene: Scene) -> None:
    old, new = prepared(scene)
    close(scene, write_record(scene, 0, new))
    lock = scene.folder / ".git" / "refs" / "heads" / "master.lock"
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    land.recover_landings(opened(scene.folder))
    assert (scene.master(), lock.exists(), old == new) == (new, False, False)
