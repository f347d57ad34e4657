"""The settings that all clones share: `project.yaml` in the ledger.

One setting a line, spelled and read as strictly as the header of a task document; what has its
default is left out. None of them is ever a command to run.

| setting | value | default |
|---|---|---|
| `format` | version of the ledger's format, 1 | has to be there |
| `minimum_version` | oldest version of the tool that may write here | none |
| `base` | the branch that tasks land on | has to be there |
| `landing` | merge, rebase or squash | merge |
| `rejection_limit` | consecutive rejections by one review that hold a task | 2 |
| `check_failure_limit` | consecutive failures of the checks that hold a task | 5 |
| `lease` | how long a claim of a person lasts | 24h |
| `runner_lease` | how long a claim of a runner lasts unless it is renewed | 1h |
| `labels` | labels that every new task gets | none |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from gittasks.domain.errors import Corrupt, UsageFault
from gittasks.domain.fields import (
    DOCUMENT_LIMIT,
    BadDocument,
    Problem,
    is_branch,
    is_dangerous,
    is_duration,
    is_text,
    is_version,
    quote,
    read_json,
    read_text,
    read_texts,
)
from gittasks.domain.values import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Landing = Literal["merge", "rebase", "squash"]
LANDINGS: tuple[Landing, ...] = get_args(Landing)

FORMAT = 1
"""The format of the ledger that this version reads and writes."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Project(NamedTuple):
    """What all clones of a project agree on."""

    base: str
    format: int = FORMAT
    minimum_version: str | None = None
    landing: Landing = "merge"
    rejection_limit: int = 2
    check_failure_limit: int = 5
    lease: str = "24h"
    runner_lease: str = "1h"
    labels: tuple[str, ...] = ()


_ORDER = ("format", "minimum_version", "base", *Project._fields[3:])
_FIXED = ("format", "base")
_CHECKS: dict[str, Callable[[str], bool]] = {
    "minimum_version": is_version,
    "base": is_branch,
    "lease": is_duration,
    "runner_lease": is_duration,
}


def parse_project(data: bytes, file: str = "project.yaml") -> Project:
    """Returns the settings; raises BadDocument with all that is wrong, Corrupt if it is newer."""
    if len(data) > DOCUMENT_LIMIT:
        sentence = f"The document has more than {DOCUMENT_LIMIT} bytes; restore the one before."
        raise BadDocument(file, [Problem(1, "", "", sentence)], _HINT)
    project = _canonical(data)
    return _strict(data, file) if project is None else project


def render_project(project: Project) -> bytes:
    """Returns the settings in their canonical form."""
    lines = []
    for name in _ORDER:
        value = getattr(project, name)
        if name not in _FIXED and value == Project._field_defaults[name]:
            continue
        if isinstance(value, tuple):
            lines.append(f"{name}: [{', '.join(map(quote, value))}]\n")
        elif name in _CHECKS:
            lines.append(f"{name}: {quote(value)}\n")
        else:
            lines.append(f"{name}: {value}\n")
    return "".join(lines).encode()


def project_dict(project: Project) -> dict[str, Any]:
    """Returns the settings for JSON output, those with their default too."""
    return {name: getattr(project, name) for name in _ORDER} | {"labels": list(project.labels)}


def set_field(project: Project, key: str, text: str) -> Project:
    """Returns the project with a setting from the command line; raises UsageFault.

    Labels are a list in JSON, or names with commas between them.
    """
    from gittasks.domain import strict

    _require_settable(key)
    value: object = text
    if key == "labels":
        listed = read_json(text)
        value = listed if isinstance(listed, list) else [part.strip() for part in text.split(",")]
    elif key in ("rejection_limit", "check_failure_limit") and text.isdecimal():
        value = int(text[:20])
    return project._replace(**{key: strict.check_value(key, value, _rules())})


def unset_field(project: Project, key: str) -> Project:
    """Returns the project with the default of a setting; raises UsageFault."""
    _require_settable(key)
    if key == "base":
        raise UsageFault("The base branch has no default.", "Set it to another branch instead.")
    return project._replace(**{key: Project._field_defaults[key]})


def parse_duration(text: str) -> int:
    """Returns the seconds of 24h, 30m, 90s, 2d or 90; raises UsageFault."""
    if not is_duration(text):
        raise UsageFault(
            f"{quote(text[:60])} is no length of time.", "Write one such as 24h, 30m or 90s."
        )
    unit = _SECONDS.get(text[-1])
    return int(text) if unit is None else int(text[:-1]) * unit


def needs_newer(project: Project, version: str) -> bool:
    """Tells whether the project asks for a newer tool than the one of this version."""
    return _numbers(project.minimum_version or "") > _numbers(version)


def _numbers(version: str) -> list[int]:
    # A version that is still being made counts as the one it will be.
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _require_settable(key: str) -> None:
    settable = [name for name in _ORDER if name != "format"]
    if key not in settable:
        raise UsageFault(
            f"There is no setting {quote(key[:60])} to change.",
            f"Choose one of {', '.join(settable)}.",
        )


def _canonical(data: bytes) -> Project | None:
    """Returns the settings, or None for whatever `render_project` would not write."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if any(is_dangerous(character) for character in set(text) if character != "\n"):
        return None
    found: dict[str, Any] = {}
    for line in text.split("\n")[:-1]:
        name, _, rest = line.partition(": ")
        value: Any = None
        if name in _CHECKS:
            value = read_text(rest)
            if value is None or not _CHECKS[name](value):
                return None
        elif name == "labels":
            value = read_texts(rest, is_text)
        elif name == "landing":
            value = rest if rest in LANDINGS else None
        elif name in _ORDER and rest.isdecimal() and len(rest) < 10:
            value = int(rest)
        found[name] = value
    if "base" not in found or None in found.values():
        return None
    project = Project(**found)
    sensible = project.format == FORMAT and project.rejection_limit and project.check_failure_limit
    return project if sensible and render_project(project) == data else None


def _strict(data: bytes, file: str) -> Project:
    from gittasks.domain import strict

    text = strict.header_text(data, 1, file)
    reader = strict.Reader()
    values, lines, _ = reader.fields(text, 1, _rules(), has_extra=False)
    # A newer format may have settings that are unknown here, so it is told first.
    if (values.get("format") or 0) > FORMAT:
        raise Corrupt(
            f"The ledger has format {values['format']}, and this version of the tool knows only"
            f" {FORMAT}.",
            "Install a newer version of gittasks.",
        )
    for name, example in (("format", str(FORMAT)), ("base", '"main"')):
        if name not in lines:
            reader.fail(1, name, "", f"The setting is missing; add a line {name}: {example}.")
    if reader.problems:
        raise BadDocument(file, sorted(reader.problems, key=lambda problem: problem.line), _HINT)
    return Project(**values)


_HINT = "Correct the lines named, or set them with `git tasks config`."


def _rules() -> Mapping[str, Any]:
    from gittasks.domain.strict import count_rule, text_rule, texts_rule, word_rule

    return {
        "format": count_rule(1),
        "minimum_version": text_rule(is_version),
        "base": text_rule(is_branch),
        "landing": word_rule(LANDINGS),
        "rejection_limit": count_rule(1),
        "check_failure_limit": count_rule(1),
        "lease": text_rule(is_duration),
        "runner_lease": text_rule(is_duration),
        "labels": texts_rule(is_text),
    }
