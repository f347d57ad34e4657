"""What this host keeps about claims and landings."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from gittasks.domain.requests import Snapshot
from gittasks.workspaces import records

CLAIM = records.ClaimRecord(
    claim="c" * 32,
    secret="s" * 32,
    task="000042",
    uid="u1",
    actor="Ada",
    role="worker",
    state="WORK",
    tree="/trees/000042/tree",
    assignment="Do it\udcff.\r\n\n## Notes\n",
    heading="## Notes",
    offset=12,
    body_oid="0" * 40,
    snapshot=Snapshot("task/000042", "1" * 40, "2" * 40, (" M a.txt",)),
    user_status=(("b.txt", " M 12"),),
    process=(12, "boot:7"),
    at=5,
)
LANDING = records.LandingRecord(
    "000042", "u1", "refs/heads/master", "1" * 40, "2" * 40, "3" * 40, "merge", "task/000042",
    (12, "boot:7"), 9,
)  # fmt: skip


def test_a_claim_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    assert records.with_claim(str(tmp_path), CLAIM.claim) == CLAIM


def test_a_landing_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    records.write_landing(str(tmp_path), LANDING)
    assert records.landings(str(tmp_path)) == (LANDING,)


def test_only_the_owner_can_read_a_secret_whatever_the_umask(tmp_path: Path) -> None:
    os.umask(0)
    records.write(str(tmp_path), CLAIM)
    file = tmp_path / "claims" / f"{CLAIM.claim}.json"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file)] == [0o700, 0o600]


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    records.write(str(tmp_path), CLAIM._replace(at=6))
    assert os.listdir(tmp_path / "claims") == [f"{CLAIM.claim}.json"]


def test_a_record_that_was_put_by_is_not_found_until_it_is_brought_back(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    records.put_by(str(tmp_path), CLAIM.claim)
    assert (records.all(str(tmp_path)), records.ended(str(tmp_path))) == ((), (CLAIM,))
    renamed = CLAIM._replace(task="000043")
    assert records.bring_back(str(tmp_path), CLAIM.claim, "000043") == renamed
    assert (records.all(str(tmp_path)), records.ended(str(tmp_path))) == ((renamed,), ())


def test_a_record_that_was_put_by_is_dropped_like_any_other(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    records.put_by(str(tmp_path), CLAIM.claim)
    records.drop(str(tmp_path), CLAIM.claim)
    assert os.listdir(tmp_path / "claims") == []


def test_the_newest_record_of_the_actor_is_found_by_task_and_by_uid(tmp_path: Path) -> None:
    newer = CLAIM._replace(claim="d" * 32, at=6)
    for one in (newer, CLAIM, CLAIM._replace(claim="e" * 32, actor="Bob", at=9)):
        records.write(str(tmp_path), one)
    state = str(tmp_path)
    assert records.find(state, "Ada", task="000042") == newer
    assert records.find(state, "Ada", uid="u1") == newer
    assert records.find(state, "Ada", task="000043") is None


def test_a_torn_record_says_nothing(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    (tmp_path / "claims" / f"{CLAIM.claim}.json").write_text('{"claim": "c')
    (tmp_path / "claims" / "empty.json").write_text("")
    assert records.all(str(tmp_path)) == ()


def test_a_record_of_a_later_version_is_read(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    file = tmp_path / "claims" / f"{CLAIM.claim}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "more": 1}))
    assert records.all(str(tmp_path)) == (CLAIM,)


def test_a_dropped_record_is_gone_and_can_be_dropped_again(tmp_path: Path) -> None:
    records.write(str(tmp_path), CLAIM)
    records.drop(str(tmp_path), CLAIM.claim)
    records.drop(str(tmp_path), CLAIM.claim)
    assert records.all(str(tmp_path)) == ()


def test_the_claim_is_the_head_of_the_digest_of_the_secret() -> None:
    secret, claim = records.new_secret()
    assert (len(secret), records.claim_of(secret)) == (32, claim)
    assert records.claim_of("abc") == "ba7816bf8f01cfea414140de5dae2223"


def test_this_process_is_alive_and_a_later_one_of_its_number_is_not() -> None:
    own = records.own_process()
    assert own is not None
    alive = [records.is_alive(own), records.is_alive((own[0], "other")), records.is_alive(None)]
    assert alive == [True, False, False]


def test_the_claims_of_a_task_are_told_from_those_of_others(tmp_path: Path) -> None:
    older, newer = (CLAIM._replace(claim=f"{n}" * 32, at=9 - n) for n in (2, 1))
    other = CLAIM._replace(claim="f" * 32, uid="u2", assignment="It follows u1.")
    for record in (newer, other, older):
        records.write(str(tmp_path), record)
    assert records.of_task(str(tmp_path), "u1") == (older, newer)


def test_a_number_that_has_changed_twice_is_known_by_each_that_it_had(tmp_path: Path) -> None:
    records.note_number(str(tmp_path), "000001", "000004", "u1")
    records.note_number(str(tmp_path), "000002", "000005", "u2")
    records.note_number(str(tmp_path), "000004", "000007", "u1")
    asked = ("000001", "000002", "000004", "000007")
    now = [records.number_now(str(tmp_path), number) for number in asked]
    assert now == ["000007", "000005", "000007", None]
