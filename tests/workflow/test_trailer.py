"""The trailer of a task goes where git will look for it, and no other byte moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gittasks.workflow.trailer import Cleanup, is_same, with_trailer
from tests.support.git import git, make_repository

CUT = "------------------------ >8 ------------------------"
PLAIN = Cleanup(has_comments=False)
CHOSEN = Cleanup(mark=b"")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("One", "One\n\nTask: 000042\n"),
        ("One\n", "One\n\nTask: 000042\n"),
        ("One\n\n\n", "One\n\nTask: 000042\n\n\n"),
        ("fix: one\n", "fix: one\n\nTask: 000042\n"),
        ("\n\nfix: one\n", "\n\nfix: one\n\nTask: 000042\n"),
        ("One\n\nTwo: is text\nhere\n", "One\n\nTwo: is text\nhere\n\nTask: 000042\n"),
        ("One\n\nSigned-off-by: A\n", "One\n\nSigned-off-by: A\nTask: 000042\n"),
        ("One\n\nX:1\n  2\nY : 3\n", "One\n\nX:1\n  2\nY : 3\nTask: 000042\n"),
        ("One\n\n  indented: text\n", "One\n\n  indented: text\n\nTask: 000042\n"),
        (
            "One\n\n(cherry picked from commit 12)\n",
            "One\n\n(cherry picked from commit 12)\nTask: 000042\n",
        ),
        ("One\n---\n\nX: 1\n", "One\n---\n\nX: 1\nTask: 000042\n"),
        ("One\r\n", "One\r\n\r\nTask: 000042\r\n"),
        ("One\r\n\r\nX: 1\r\n", "One\r\n\r\nX: 1\r\nTask: 000042\r\n"),
        ("One\n# Please\n#\n# enter\n", "One\n\nTask: 000042\n# Please\n#\n# enter\n"),
        ("# First\nOne\n\n# x\nX: 1\n# y\n", "# First\nOne\n\n# x\nX: 1\nTask: 000042\n# y\n"),
        (f"One\n# {CUT}\n# x\ndiff\n", f"One\n\nTask: 000042\n# {CUT}\n# x\ndiff\n"),
    ],
)
def test_the_trailer_is_the_last_thing_said(before: str, after: str) -> None:
    assert with_trailer(before.encode(), "000042") == after.encode()
    assert with_trailer(after.encode(), "000042") == after.encode()


@pytest.mark.parametrize(
    "text",
    ["", "\n", "# only\n", f"# {CUT}\ndiff\n", "One\n\nTask: 000041\n", "One\n\ntask: 7\nX: 1\n"],
)
def test_nothing_is_added_to_nothing_or_beside_another(text: str) -> None:
    assert with_trailer(text.encode(), "000042") == text.encode()


@pytest.mark.parametrize(
    ("cleanup", "before", "after"),
    [
        (PLAIN, "One\n\n#7: X\n", "One\n\n#7: X\n\nTask: 000042\n"),
        (PLAIN, f"One\n# {CUT}\ndiff\n", f"One\n\nTask: 000042\n# {CUT}\ndiff\n"),
        (Cleanup(b"//"), "#1\n\n// x\n", "#1\n\nTask: 000042\n\n// x\n"),
        (Cleanup(b";"), f"One\n; {CUT}\ndiff\n", f"One\n\nTask: 000042\n; {CUT}\ndiff\n"),
        (CHOSEN, "#1 one\n\n; x\n;\n", "#1 one\n\nTask: 000042\n\n; x\n;\n"),
        (CHOSEN, f"One\n; {CUT}\ndiff\n", f"One\n\nTask: 000042\n; {CUT}\ndiff\n"),
        (CHOSEN, f"One\n\nab {CUT}\n", f"One\n\nab {CUT}\n\nTask: 000042\n"),
    ],
)
def test_what_is_a_comment_depends_on_the_settings(
    cleanup: Cleanup, before: str, after: str
) -> None:
    assert with_trailer(before.encode(), "000042", cleanup) == after.encode()


def test_a_template_with_other_comments_is_still_the_template() -> None:
    template = b"Why?\n\n# Say why.\n"
    assert is_same(b"Why?\n# Say why.\n# Please enter\n", template, Cleanup())
    assert not is_same(b"Why? Because.\n# Say why.\n", template, Cleanup())


LINES = st.lists(
    st.sampled_from(["", "One", "X: 1", " y", "# c", "Task 1", "---", "é: 2", "Task: 000042"]),
    max_size=7,
)


@given(LINES, st.booleans())
def test_every_byte_stays_in_its_place(lines: list[str], ended: bool) -> None:
    text = ("\n".join(lines) + ("\n" if ended else "")).encode()
    once = with_trailer(text, "000042")
    assert with_trailer(once, "000042") == once
    before, _, after = once.rpartition(b"Task: 000042\n") if once != text else (once, b"", b"")
    assert (before + after).replace(b"\n", b"") == text.replace(b"\n", b"")


def test_git_reads_the_trailer_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = make_repository(tmp_path_factory.mktemp("trailer"))
    for text in ("One", "One\n---\ntwo", "One\n\nX: 1", "x: y\n\nBecause:\n\n  z: 1"):
        whole = with_trailer(text.encode(), "000042", PLAIN)
        git(folder, "commit", "-q", "--allow-empty", "-F", "-", stdin=whole)
        assert git(folder, "log", "-1", "--format=%(trailers:key=Task)").strip() == "Task: 000042"
