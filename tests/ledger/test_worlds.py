"""The projections on a real ledger: two derivations, checkpoints, and files that are none."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gittasks.domain.projections import table
from gittasks.domain.projections.costs import Costs, Spent
from gittasks.domain.projections.table import World
from gittasks.domain.requests import Abort, Edit, Hold, Note, Resume, Submit
from gittasks.ledger import history, worlds
from gittasks.ledger.ledger import Ledger
from tests.support.ledgers import a_request, asks, open_ledger
from tests.support.worlds import assert_derivations_agree


@pytest.fixture
def story(ledger: Ledger) -> Ledger:
    for number in range(1, 6):
        needs = (f"{number - 1:06d}",) if number > 1 else ()
        ledger.append(asks(a_request(number, depends_on=needs)))
    for task in ("000001", "000002"):
        ledger.append(asks(Submit(task, "WORK")))
    ledger.append(asks(Hold("000001", "Which?")))
    ledger.append(asks(Note("000002", "Seen.", (("pr", "7"),))))
    ledger.append(asks(Resume("000001")))
    ledger.append(asks(Edit("000003", (("title", "Third"), ("priority", 0)))))
    ledger.append(asks(Hold("000001", "Again?")))
    ledger.append(asks(Abort("000001")))
    return ledger


def _commits(ledger: Ledger) -> list[str]:
    return [one.oid for one in history.since(ledger.repo, ledger.tip)][::-1]


def _at(ledger: Ledger, oid: str) -> World:
    return worlds.at(ledger, oid, worth=1)


def _plain(ledger: Ledger, oid: str) -> World:
    return table.resume(World(), history.facts(ledger.repo, oid))


def _folder(ledger: Ledger) -> Path:
    return Path(ledger.state_dir) / worlds.FOLDER


def test_tree_and_fold_agree_at_every_commit(story: Ledger, folder: Path) -> None:
    assert assert_derivations_agree(folder) == len(_commits(story))


def test_from_every_checkpoint_every_later_world_is_the_same(story: Ledger) -> None:
    commits = _commits(story)
    for first in commits:
        for file in _folder(story).glob("*"):
            file.unlink()
        _at(story, first)
        for later in commits:
            assert _at(story, later) == _plain(story, later)


def test_only_what_came_after_a_checkpoint_is_read(story: Ledger) -> None:
    marked = _at(story, story.tip)._replace(costs=Costs(Spent(claims=99)))
    _rewrite(_folder(story) / story.tip, pickle.dumps(marked))
    story.append(asks(Note("000002", "Later.")))
    world = _at(story, story.tip)
    assert (world.commits, world.costs.total.claims) == (marked.commits + 1, 99)


def test_a_few_checkpoints_are_kept_and_nothing_else(story: Ledger) -> None:
    for number in range(60):
        story.append(asks(Note("000002", f"Note {number}.")))
        _at(story, story.tip)
    names = [file.name for file in _folder(story).iterdir()]
    assert 1 < len(names) <= worlds.KEPT
    assert set(names) <= set(_commits(story))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(b"\0" * 4096),
        lambda file: file.write_bytes(file.read_bytes().replace(b'"version"', b'"versions"')),
        lambda file: file.rename(file.with_name("f" * 40)),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: file.write_bytes(b"[" * 2_000),
        lambda file: file.write_bytes(_with_header(file, commits=float("inf"))),
        lambda file: file.with_name("1" * 40).write_bytes(_with_header(file, oid="1" * 40)),
    ],
    ids=[
        "empty",
        "cut off",
        "zeros",
        "another version",
        "of another commit",
        "a folder",
        "brackets",
        "an infinite number",
        "of a commit that is gone",
    ],
)
def test_a_checkpoint_that_does_not_fit_is_as_good_as_absent(
    story: Ledger, spoil: Callable[[Path], object]
) -> None:
    _at(story, story.tip)
    for file in list(_folder(story).iterdir()):
        spoil(file)
    assert _at(story, story.tip) == _plain(story, story.tip)


def _with_header(file: Path, **fields: object) -> bytes:
    """Returns a checkpoint with other words in its header."""
    header, _, data = file.read_bytes().partition(b"\n")
    return json.dumps({**json.loads(header), **fields}).encode() + b"\n" + data


def _rewrite(file: Path, data: bytes) -> None:
    """Puts other bytes into a checkpoint, with a header that vouches for them."""
    header = _with_header(file, digest=sha256(data).hexdigest()).partition(b"\n")[0]
    file.write_bytes(header + b"\n" + data)


def test_what_a_crash_has_left_beside_goes_an_hour_later(story: Ledger) -> None:
    _at(story, story.tip)
    old, new = (_folder(story) / f"{story.tip}.{number}.abcd" for number in (1, 2))
    for file, age in ((old, 2 * worlds.LEFT_OVER), (new, 60)):
        file.write_bytes(b"half")
        os.utime(file, (story.clock() - age, story.clock() - age))
    story.append(asks(Note("000002", "Later.")))
    _at(story, story.tip)
    assert (old.exists(), new.exists()) == (False, True)


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (os.environ["HOME"] + "/called",)


def test_a_checkpoint_calls_nothing(story: Ledger, home: Path) -> None:
    _at(story, story.tip)
    _rewrite(_folder(story) / story.tip, pickle.dumps(_Evil()))
    assert _at(story, story.tip) == _plain(story, story.tip)
    assert not (home / "called").exists()


def test_where_nothing_can_be_kept_it_only_takes_longer(story: Ledger) -> None:
    _folder(story).write_text("a file in the way")
    assert _at(story, story.tip) == _plain(story, story.tip)


def test_a_checkpoint_of_another_history_is_not_used(story: Ledger, folder: Path) -> None:
    commits = _commits(story)
    _at(story, story.tip)
    story.repo.git("update-ref", story.branch, commits[3], story.tip)
    other = open_ledger(folder)
    other.append(asks(a_request(9)))
    assert _at(other, other.tip) == _plain(other, other.tip)
    other.close()


def test_what_is_no_event_stops_nobody(story: Ledger) -> None:
    tree = story.repo.text("rev-parse", f"{story.tip}^{{tree}}").strip()
    oid = story.repo.text(
        "-c", "user.name=Eve", "-c", "user.email=e@e", "commit-tree", tree, "-p", story.tip,
        "-m", "by hand",
    ).strip()  # fmt: skip
    world = _at(story, oid)
    assert [one.oid for one in world.graph.violations] == [oid]
    assert world.graph._replace(violations=()) == _at(story, story.tip).graph


def test_before_the_first_event_there_is_nothing(story: Ledger) -> None:
    root = story.repo.text("rev-list", "--max-parents=0", story.tip).strip()
    assert _at(story, root) == World()
