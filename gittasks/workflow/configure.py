"""What all clones share: the settings in `project.yaml`, the template and the prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gittasks import __version__
from gittasks.domain import config
from gittasks.domain.errors import GittasksError, UsageFault, WrongRole
from gittasks.domain.events import Configured, Event
from gittasks.domain.fields import shown
from gittasks.ledger import layout
from gittasks.prompts import fragments
from gittasks.workflow import edit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gittasks.domain.task_graph import Graph
    from gittasks.workflow.project import Project

SETTINGS = config.Project._fields


class Changed(NamedTuple):
    """What a change of the settings did: the settings now, the commit, whether anything moved."""

    settings: dict[str, Any]
    commit: str | None
    changed: bool


def values(project: Project) -> dict[str, Any]:
    """Returns every setting, those with their default too."""
    project.require_ledger()
    return config.project_dict(project.settings)


def value(project: Project, key: str) -> Any:
    """Returns one setting, or the shared text of that name; raises UsageFault for others."""
    project.require_ledger()
    if _is_text(key):
        text = project.ledger.text(path_of(key))
        return None if text is None else text.decode("utf-8", "replace")
    if key not in SETTINGS:
        raise _unknown(key)
    return values(project)[key]


def set_value(project: Project, key: str, text: str) -> Changed:
    """Sets one setting for all clones."""
    if key not in SETTINGS:
        raise _unknown(key)

    def change(now: config.Project) -> Configured | None:
        after = config.set_field(now, key, text)
        if config.needs_newer(after, __version__):
            raise UsageFault(
                f"The version {text} is newer than this gittasks, {__version__}, which it would stop.",
                "Install that version first.",
            )
        return None if after == now else Configured(set=((key, getattr(after, key)),))

    return _append(project, lambda: change(project.ledger.project()))


def unset(project: Project, key: str) -> Changed:
    """Takes a setting back to its default, or removes a shared text."""
    if _is_text(key):
        return _write_text(project, path_of(key), None)
    if key not in SETTINGS:
        raise _unknown(key)

    def change(now: config.Project) -> Configured | None:
        return None if config.unset_field(now, key) == now else Configured(unset=(key,))

    return _append(project, lambda: change(project.ledger.project()))


def edit_text(project: Project, name: str, write: Callable[[str], None] | None = None) -> Changed:
    """Lets `write`, else git's editor, change the template or a prompt; empty removes it.

    A prompt begins with the text that came with the tool; left as it is, nothing is stored.
    """
    _require_manager(project)
    path = path_of(name)
    own = _own_prompt(path)
    before = project.ledger.text(path) or own
    data, kept = edit.by_hand(project, path.replace("/", "-"), before, write)
    try:
        _require_text(data)
        if data.strip() and own:
            _require_usable(path, data.decode())
        changed = _write_text(project, path, data if data.strip() and data != own else None)
    except GittasksError as error:
        raise kept.refusal(error) from None
    edit.forget(kept)
    return changed


def path_of(name: str) -> str:
    """Returns where the shared text of a name is in the ledger; raises UsageFault."""
    path = name.removesuffix(".md") + ".md"
    if not layout.is_shared_text(path):
        raise UsageFault(
            f"There is no shared text {shown(name)}.", "Name `template`, or `prompts/NAME`."
        )
    return path


def _prompt_of(path: str) -> str:
    return path.removeprefix(f"{layout.PROMPTS}/").removesuffix(".md")


def _own_prompt(path: str) -> bytes:
    """Returns the prompt that came with the tool, b"" for the template; raises UsageFault."""
    name = _prompt_of(path)
    if path == layout.TEMPLATE_FILE:
        return b""
    if name not in fragments.PROMPTS:
        raise UsageFault(
            f"There is no prompt {shown(name)}.", f"Name one of {', '.join(fragments.PROMPTS)}."
        )
    return fragments.own(name).encode()


def _require_usable(path: str, text: str) -> None:
    faults = fragments.faults_of(_prompt_of(path), text)
    if faults:
        lines = [f"  {fault.told}" for fault in faults]
        raise UsageFault("\n".join(["This prompt cannot be used.", *lines]))


def _is_text(key: str) -> bool:
    return layout.is_shared_text(key.removesuffix(".md") + ".md")


def _unknown(key: str) -> UsageFault:
    from difflib import get_close_matches

    near = get_close_matches(key, SETTINGS, 1)
    hint = f"Did you mean {near[0]}?" if near else f"Choose one of {', '.join(SETTINGS)}."
    return UsageFault(f"There is no setting {shown(key)}.", hint)


def _require_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UsageFault("The text is not UTF-8.", "Save it as UTF-8.") from None
    if len(data) > layout.DOCUMENT_LIMIT:
        raise UsageFault("The text is longer than 4 MiB.", "Shorten it.")


def _require_manager(project: Project) -> str:
    project.require_ledger()
    speaker = project.speaker("config")
    if speaker.role != "manager":
        raise WrongRole(
            "Only the manager may change what all clones share.",
            "Run `git tasks whoami` to see why you are somebody else.",
        )
    return speaker.actor


def _write_text(project: Project, path: str, data: bytes | None) -> Changed:
    def change() -> Configured | None:
        if project.ledger.text(path) == data:
            return None
        return Configured(path=path)

    return _append(project, change, data)


def _append(
    project: Project, change: Callable[[], Configured | None], body: bytes | None = None
) -> Changed:
    actor = _require_manager(project)

    def events(_graph: Graph) -> Sequence[Event]:
        wanted = change()
        if wanted is None:
            return ()
        return (
            Event(
                event_id="",
                at=project.clock(),
                actor=actor,
                role="manager",
                host=project.host,
                change=wanted,
                body=body,
            ),
        )

    appended = project.ledger.append(events)
    commit = appended.commits[-1] if appended.commits else None
    return Changed(config.project_dict(project.ledger.project()), commit, commit is not None)
