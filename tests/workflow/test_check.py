"""The checks of a task: to look, on the merged result, and as the checker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gittasks.domain.errors import CheckFailed, NotAllowed, Refused, Taken
from gittasks.domain.requests import Claim
from gittasks.workflow import check, hold, trust
from tests.support.scenarios import CHECKOUT
from tests.workflow.landings import Scene

TASK = "000001"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "repo")


def at_check(scene: Scene, *checks: str, files: dict[str, str] | None = None) -> str:
    """Brings a task to CHECK without running its checks; returns the tip."""
    scene.new(TASK, *checks)
    return scene.worked(TASK, files or {"a.txt": "one\n"}, check=False)


def in_background(scene: Scene) -> subprocess.Popen[str]:
    """Starts `check --record` as a process of its own."""
    code = (
        "import sys; from pathlib import Path\n"
        "from gittasks.workflow import check; from tests.workflow.ground import opened\n"
        "check.check(opened(Path(sys.argv[1])), sys.argv[2], record=True)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(scene.folder), TASK],
        cwd=CHECKOUT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(path: Path) -> None:
    for _ in range(500):
        if path.exists() and path.read_text():
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never came")


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_submit_checks_exactly_what_it_submitted(scene: Scene) -> None:
    scene.new(TASK, "test -e a.txt", "git rev-parse HEAD")
    tip = scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    outcome = scene.submitted(TASK)
    task = scene.manager.task(TASK)
    assert (outcome.source, outcome.target) == ("WORK", "WORK_REVIEW")
    assert (task.state, task.submitted_tip, task.checked_tip) == ("WORK_REVIEW", tip, tip)
    log = Path(check.logs_of(scene.manager, TASK), "2.log")
    assert log.read_text() == f"{tip}\n"


def test_a_failing_check_sends_the_task_back_and_says_how_each_ended(scene: Scene) -> None:
    scene.new(TASK, "true", "echo output of it; exit 3")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    with pytest.raises(CheckFailed) as failed:
        scene.submitted(TASK)
    report = "`true`: passed\n`echo output of it; exit 3`: exit code 3\n    output of it"
    assert failed.value.message == f"The checks of {TASK} failed; it is back at WORK.\n{report}"
    task = scene.manager.task(TASK)
    assert (task.state, task.claim, task.checked_tip) == ("WORK", None, None)
    assert check.last_report(scene.manager, TASK) == report + "\n"


def test_no_output_of_a_check_gets_into_the_ledger(scene: Scene) -> None:
    scene.new(TASK, "echo pass$((1+1))word; exit 1")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    with pytest.raises(CheckFailed, match="pass2word"):
        scene.submitted(TASK)
    findings = scene.manager.task(TASK).findings
    assert findings is not None
    assert findings.items[0].startswith("The check `echo pass$((1+1))word; exit 1` failed: exit")
    ledger = scene.git("log", "-p", "--format=%B", "gittasks")
    assert ("pass$((1+1))word" in ledger, "pass2word" in ledger) == (True, False)


def test_a_check_that_never_ends_is_a_failure_in_time(scene: Scene) -> None:
    scene.git("config", "gittasks.checkTimeout", "1s")
    scene.new(TASK, "sleep 600 & echo $! > ../pid; wait", "true")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    started = time.monotonic()
    with pytest.raises(CheckFailed, match=r"timed out after 1 s\n`true`: passed"):
        scene.submitted(TASK)
    pid = int((scene.tree(TASK).parent / "pid").read_text())
    assert (time.monotonic() - started < 10, scene.state(TASK)) == (True, "WORK")
    assert not is_running(pid)


def test_no_checks_pass_and_are_recorded_as_none(scene: Scene) -> None:
    tip = at_check(scene)
    check.record_check(scene.manager, TASK)
    subject = scene.git("show", "-s", "--format=%B", "gittasks")
    assert (scene.manager.task(TASK).checked_tip, "no checks" in subject) == (tip, True)


@pytest.mark.parametrize("setting", ["ask", "never"])
def test_commands_nobody_here_approved_do_not_run(scene: Scene, setting: str) -> None:
    scene.new(TASK, f"touch {scene.folder}/../ran")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    trust.revoke(scene.manager, None)
    scene.git("config", "gittasks.trust", setting)
    outcome = scene.submitted(TASK)
    assert (outcome.target, scene.state(TASK)) == ("CHECK", "CHECK")
    assert f"approve them with `git tasks trust {TASK}`" in outcome.notes[0]
    with pytest.raises(Refused, match="not approved in this clone"):
        check.check(scene.manager, TASK)
    assert not (scene.folder.parent / "ran").exists()


def test_a_task_that_waits_for_trust_goes_on_when_it_is_given(scene: Scene) -> None:
    tip = at_check(scene, "true")
    trust.revoke(scene.manager, None)
    waiting = check.check(scene.manager, TASK, record=True).changed
    trust.approve(scene.manager, TASK)
    outcome = check.check(scene.manager, TASK, record=True)
    assert (waiting, outcome.target, outcome.task.checked_tip) == (False, "WORK_REVIEW", tip)


def test_a_hold_stops_a_running_check_and_nothing_is_recorded(scene: Scene) -> None:
    at_check(scene, "echo $$ > ../pid; sleep 600")
    process = in_background(scene)
    pid = scene.tree(TASK).parent / "pid"
    wait_for(pid)
    hold.hold(scene.manager, TASK, "Wait.")
    said = process.communicate(timeout=20)[1]
    assert f"The task {TASK} left CHECK while its checks ran" in said
    assert (scene.state(TASK), is_running(int(pid.read_text()))) == ("HELD_WORK", False)


def test_another_event_of_the_ledger_does_not_stop_a_check(scene: Scene) -> None:
    at_check(scene, "echo $$ > ../pid; while test ! -e ../go; do sleep 0.05; done")
    process = in_background(scene)
    wait_for(scene.tree(TASK).parent / "pid")
    scene.new("000002")
    time.sleep(0.6)
    (scene.tree(TASK).parent / "go").touch()
    assert (process.communicate(timeout=20)[1], scene.state(TASK)) == ("", "WORK_REVIEW")


def test_a_tree_that_is_not_at_the_submitted_commit_is_not_checked(scene: Scene) -> None:
    tip = at_check(scene, "true")
    scene.commit(scene.tree(TASK), {"a.txt": "later\n"})
    with pytest.raises(Refused, match=f"only the submitted commit {tip[:12]} is checked"):
        check.record_check(scene.manager, TASK)
    assert scene.state(TASK) == "CHECK"


def test_a_tree_with_uncommitted_files_is_not_checked(scene: Scene) -> None:
    at_check(scene, "true")
    (scene.tree(TASK) / "new.txt").touch()
    with pytest.raises(Refused, match="is not clean"):
        check.record_check(scene.manager, TASK)


def test_a_branch_that_moves_under_a_check_is_not_recorded(scene: Scene) -> None:
    at_check(scene, "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m Moved")
    with pytest.raises(Refused, match="moved while the checks ran; nothing was recorded"):
        check.record_check(scene.manager, TASK)
    assert scene.state(TASK) == "CHECK"


def test_a_lost_tree_is_brought_back_for_the_check(scene: Scene) -> None:
    at_check(scene, "test -e a.txt")
    subprocess.run(["rm", "-rf", scene.tree(TASK)], check=True)
    assert check.record_check(scene.manager, TASK).target == "WORK_REVIEW"


def test_a_check_that_another_has_claimed_is_left_to_it(scene: Scene) -> None:
    tip = at_check(scene, "true")
    runner = scene.agent("runner", "checker")
    request = Claim(TASK, "c" * 32, 1_800_003_600, f"task/{TASK}", tip, tip)
    runner.apply(request, runner.speaker("claim", TASK, claiming=True))
    with pytest.raises(Taken, match="is held by runner"):
        check.record_check(scene.manager, TASK)


def test_there_is_nothing_to_record_elsewhere_than_at_check(scene: Scene) -> None:
    scene.new(TASK, "true")
    with pytest.raises(NotAllowed, match="is at WORK, so there is no check to record"):
        check.check(scene.manager, TASK, record=True)


def test_a_look_at_the_checks_moves_nothing(scene: Scene) -> None:
    scene.new(TASK, "test -e a.txt")
    tree = scene.started(TASK)
    before = scene.git("rev-parse", "gittasks")
    with pytest.raises(CheckFailed, match=f"The checks of {TASK} failed in {tree}"):
        check.check(scene.manager, TASK)
    (tree / "a.txt").touch()
    outcome = check.check(scene.manager, TASK)
    assert (outcome.changed, outcome.notes) == (False, ("`test -e a.txt`: passed",))
    assert scene.git("rev-parse", "gittasks") == before


def test_a_look_at_the_merged_result_runs_elsewhere(scene: Scene) -> None:
    scene.new(TASK, "test -e a.txt -a ! -e b.txt")
    scene.commit(scene.started(TASK), {"a.txt": "one\n"})
    alone = check.check(scene.manager, TASK, merged=True).changed
    scene.commit(scene.folder, {"b.txt": "two\n"})
    with pytest.raises(CheckFailed, match="failed in the merged result"):
        check.check(scene.manager, TASK, merged=True)
    assert (alone, scene.traces(), scene.git("status", "--porcelain")) == (False, [], "")


def test_a_task_nobody_has_started_has_nothing_to_check(scene: Scene) -> None:
    scene.new(TASK, "true")
    with pytest.raises(Refused, match="has no branch yet"):
        check.check(scene.manager, TASK)


def test_the_fifth_failure_in_a_row_holds_the_task(scene: Scene) -> None:
    scene.new(TASK, "false")
    hints = []
    for number in range(5):
        tree = scene.started(TASK)
        scene.commit(tree, {"a.txt": f"{number}\n"})
        with pytest.raises(CheckFailed) as failed:
            scene.submitted(TASK)
        hints.append(failed.value.hint)
    assert scene.state(TASK) == "HELD_WORK"
    again = f"Correct it and submit again: git tasks start {TASK}."
    assert hints == [*[again] * 4, f"Look at it and let it go on: git tasks resume {TASK}."]


def test_what_a_killed_check_has_left_is_gone_before_the_next_one_runs(scene: Scene) -> None:
    at_check(scene, "true")
    environ = {**os.environ, "GITTASKS_CHECK": f"{scene.manager.host}.{TASK}.record.0"}
    orphan = subprocess.Popen(["sleep", "60"], env=environ, start_new_session=True)
    check.check(scene.manager, TASK, record=True)
    assert orphan.wait(timeout=5) == -9
