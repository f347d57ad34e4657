"""The settings that all clones share: what is written, what is read, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gittasks.domain import config
from gittasks.domain.config import Project
from gittasks.domain.errors import Corrupt, UsageFault
from gittasks.domain.fields import BadDocument

DEFAULT = Project("main")
FULL = Project(
    "release/1",
    minimum_version="1.2",
    landing="squash",
    rejection_limit=3,
    check_failure_limit=1,
    lease="2d",
    runner_lease="90s",
    labels=("ui", "größe"),
)
FULL_TEXT = """format: 1
minimum_version: "1.2"
base: "release/1"
landing: squash
rejection_limit: 3
check_failure_limit: 1
lease: "2d"
runner_lease: "90s"
labels: ["ui", "größe"]
"""


def problems(data: bytes) -> list[str]:
    """Returns the lines of problems; fails if there are none."""
    with pytest.raises(BadDocument) as caught:
        config.parse_project(data)
    return [
        f"{problem.line} {problem.field}: {problem.message}" for problem in caught.value.problems
    ]


def test_every_setting_is_written_in_its_place_and_form() -> None:
    assert config.render_project(FULL).decode() == FULL_TEXT


def test_what_is_default_is_left_out() -> None:
    assert config.render_project(DEFAULT) == b'format: 1\nbase: "main"\n'


@pytest.mark.parametrize("project", [DEFAULT, FULL], ids=["default", "full"])
def test_what_is_written_is_read_back(project: Project) -> None:
    assert config.parse_project(config.render_project(project)) == project


@pytest.mark.parametrize(
    "text",
    [
        "base: release/1\nformat: 1\nminimum_version: '1.2'\nlanding: squash # kept\n"
        "rejection_limit: 3\ncheck_failure_limit: 1\nlease: 2d\nrunner_lease: 90s\n"
        "labels:\n- ui\n- größe\n",
        "\n" + FULL_TEXT,
        FULL_TEXT.removesuffix("\n"),
        FULL_TEXT.replace("landing: squash", 'landing: "squash"'),
        FULL_TEXT.replace('"2d"', "2d"),
        FULL_TEXT.replace('["ui"', "[ui"),
    ],
)
def test_settings_written_by_hand_are_read_alike(text: str) -> None:
    assert config.parse_project(text.encode()) == FULL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", ["1 format: The setting is missing; add a line format: 1.",
               '1 base: The setting is missing; add a line base: "main".']),
        (b"format: 1\n", ['1 base: The setting is missing; add a line base: "main".']),
        (b"format: 0\nbase: main\n", ['1 format: "0" is no whole number from 1 on.']),
        (b"format: 1\nbase: no\nlandin: merge\nlease: 60\nhook: rm\n",
         ['2 base: no is no text in YAML; write base: "no".',
          "3 landin: The key is unknown; did you mean landing?",
          '4 lease: 60 is no text in YAML; write lease: "60".',
          "5 hook: The key is unknown; remove it."]),
        (b'format: 1\nbase: "-x"\n',
         ['2 base: "-x" is nothing that git can take for a branch; write one without blanks that'
          " does not begin with -."]),
        (b'format: 1\nbase: "a"\nrejection_limit: 0\n',
         ['3 rejection_limit: "0" is no whole number from 1 on.']),
        (b'format: 1\nbase: "a"\nlease: "0h"\nrunner_lease: "1w"\n',
         ['3 lease: "0h" is no length of time; write one such as 24h, 30m or 90s.',
          '4 runner_lease: "1w" is no length of time; write one such as 24h, 30m or 90s.']),
        (b'format: 1\nbase: "a"\nminimum_version: "1.x"\n',
         ['3 minimum_version: "1.x" is no version; write numbers with points between them, such'
          " as 1.2."]),
        (b'format: 1\nbase: "a"\nlanding: fast\n',
         ['3 landing: "fast" is not possible; write one of merge, rebase, squash.']),
        (b'format: 1\nbase: "a"\nx-own: 1\n', ["3 x-own: The key is unknown; remove it."]),
        (b'format: 1\nbase: "a"\nbase: "b"\n',
         ["3 base: The key stands twice, first in line 2; remove one of them."]),
        (b"format: 1\nbase: \xff\n",
         ["2 : The byte 0xff is not UTF-8; save the document as UTF-8."]),
        (b"\xff" + b"\r\n" * 200, ["1 : The byte 0xff is not UTF-8; save the document as UTF-8."]),
        (b"format: 1\r\n", ["1 : The line ends in CR LF; let it end in LF alone."]),
        (b"\n" * 4_194_305,
         ["1 : The document has more than 4194304 bytes; restore the one before."]),
    ],
    ids=range(15),
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_the_fix(text: bytes, expected: list[str]) -> None:
    assert problems(text) == expected


def test_a_newer_format_asks_for_a_newer_tool() -> None:
    with pytest.raises(Corrupt) as caught:
        config.parse_project(b'format: 2\nbase: "main"\nfuture: true\n')
    assert (caught.value.message, caught.value.hint) == (
        "The ledger has format 2, and this version of the tool knows only 1.",
        "Install a newer version of gittasks.",
    )


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("base", "trunk", "trunk"),
        ("landing", "rebase", "rebase"),
        ("rejection_limit", "4", 4),
        ("check_failure_limit", "1", 1),
        ("lease", "90", "90"),
        ("runner_lease", "30m", "30m"),
        ("minimum_version", "1", "1"),
        ("labels", "ui, api", ("ui", "api")),
        ("labels", '["a, b"]', ("a, b",)),
        ("labels", "[]", ()),
    ],
)
def test_a_setting_is_set(key: str, text: str, value: object) -> None:
    changes: dict[str, Any] = {key: value}
    assert config.set_field(DEFAULT, key, text) == DEFAULT._replace(**changes)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("format", "2", 'There is no setting "format" to change.'),
        ("hook", "rm", 'There is no setting "hook" to change.'),
        ("landing", "fast", 'landing: "fast" is not possible; write one of merge, rebase,'
         " squash."),
        ("rejection_limit", "0", 'rejection_limit: "0" is no whole number from 1 on.'),
        ("rejection_limit", "two", 'rejection_limit: "two" is no whole number from 1 on.'),
        ("rejection_limit", "9" * 5000, 'rejection_limit: "a huge number" is no whole number from'
         " 1 on."),
        ("labels", "a,,b", "labels[1]: An empty text is blank; write a text, or remove the"
         " line."),
        ("labels", "[1]", 'labels[0]: 1 is no text in YAML; write "1".'),
        ("lease", "", "lease: An empty text is no length of time; write one such as 24h, 30m or"
         " 90s."),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_setting_with_a_wrong_value_is_refused(key: str, text: str, message: str) -> None:
    with pytest.raises(UsageFault) as caught:
        config.set_field(DEFAULT, key, text)
    assert caught.value.message == message


def test_an_unknown_setting_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageFault) as caught:
        config.set_field(DEFAULT, "hook", "rm")
    assert caught.value.hint == (
        "Choose one of minimum_version, base, landing, rejection_limit, check_failure_limit,"
        " lease, runner_lease, labels."
    )


def test_a_setting_that_is_unset_has_its_default() -> None:
    assert config.unset_field(FULL, "lease") == FULL._replace(lease="24h")


@pytest.mark.parametrize("key", ["base", "format", "hook"])
def test_what_has_no_default_is_not_unset(key: str) -> None:
    with pytest.raises(UsageFault):
        config.unset_field(FULL, key)


def test_json_output_has_every_setting() -> None:
    assert config.project_dict(DEFAULT) == {
        "format": 1,
        "minimum_version": None,
        "base": "main",
        "landing": "merge",
        "rejection_limit": 2,
        "check_failure_limit": 5,
        "lease": "24h",
        "runner_lease": "1h",
        "labels": [],
    }


@pytest.mark.parametrize(
    ("text", "seconds"), [("24h", 86_400), ("30m", 1800), ("90s", 90), ("90", 90), ("2d", 172_800)]
)
def test_a_length_of_time_is_read_in_seconds(text: str, seconds: int) -> None:
    assert config.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "0", "0h", "-1h", "1w", "1.5h", " 1h", "٣h", "9" * 10])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(UsageFault, match="is no length of time"):
        config.parse_duration(text)


@pytest.mark.parametrize(
    ("minimum", "version", "expected"),
    [
        (None, "0.1", False),
        ("0.1", "0.1", False),
        ("0.1", "0.1.0", False),
        ("0.1.0", "0.1", False),
        ("0.2", "0.10", False),
        ("0.10", "0.2", True),
        ("1", "0.9.9", True),
        ("0.2", "0.2.dev3", False),
        ("0.2", "0.2rc1", False),
    ],
)
def test_versions_are_compared_by_their_numbers(
    minimum: str | None, version: str, expected: bool
) -> None:
    assert config.needs_newer(DEFAULT._replace(minimum_version=minimum), version) is expected
