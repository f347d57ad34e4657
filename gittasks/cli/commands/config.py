"""`git tasks config`: reads or sets what all clones share."""

from __future__ import annotations

import json
from typing import Any

from gittasks.cli import frame, texts
from gittasks.domain.errors import UsageFault


@frame.command("config", past=True)
@frame.argument("key", required=False)
@frame.argument("value", required=False)
@frame.option("--edit", "edited", metavar="NAME", help="edit `template` or `prompts/NAME`")
@frame.option("--unset", metavar="NAME", help="back to the default, or without the text")
def command(
    session: frame.Session,
    key: str | None,
    value: str | None,
    edited: str | None,
    unset: str | None,
) -> None:
    """Read or set what all clones share; without a key, everything.

    What belongs to this clone alone is in `git config gittasks.*`.
    """
    from gittasks.workflow import configure

    project = session.project
    if [key is not None, edited is not None, unset is not None].count(True) > 1:
        raise UsageFault("This asks for two things at once.", "Name one setting.")
    if edited is not None:
        texts.require_editor("Set GIT_EDITOR to a command that writes the text.")
        _tell(session, configure.edit_text(project, edited))
    elif unset is not None:
        _tell(session, configure.unset(project, unset))
    elif key is not None and value is not None:
        _tell(session, configure.set_value(project, key, value))
    elif key is not None:
        found = configure.value(project, key)
        if not session.answer("config", {key: found}):
            session.out.block(_spelled(found))
    else:
        values = configure.values(project)
        if not session.answer("config", values):
            session.out.rows([f"{name} = {_spelled(one)}" for name, one in values.items()])


def _tell(session: frame.Session, changed: Any) -> None:
    data = {**changed.settings, "commit": changed.commit}
    if not session.answer("config", data, changed.commit) and not changed.changed:
        session.out.say("There is nothing to do.")


def _spelled(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
