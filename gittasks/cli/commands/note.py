"""`git tasks note`: adds to the history of a task."""

from __future__ import annotations

from gittasks.cli import frame, texts
from gittasks.cli.catalogue import is_task_word
from gittasks.domain.errors import UsageFault


@frame.command("note")
@frame.argument("words", nargs=-1, metavar="[TASK] [TEXT]")
@frame.option("-m", "messages", multiple=True, metavar="TEXT", help="the note")
@frame.option("-F", "file", metavar="FILE", help="read the note from FILE, - is stdin")
@frame.option("--artifact", "artifacts", multiple=True, metavar="NAME=VALUE", help="record it")
@frame.option("--seen", is_flag=True, help="clear what the inbox says about the task")
def command(
    session: frame.Session,
    words: tuple[str, ...],
    messages: tuple[str, ...],
    file: str | None,
    artifacts: tuple[str, ...],
    seen: bool,
) -> None:
    """Add a note to a task's history."""
    from gittasks.workflow.note import note

    text = texts.words(session, messages, file)
    if len(words) > 2 or (len(words) == 2 and text is not None):
        raise UsageFault("There is more than one note.", "Put the text in quotes.")
    if len(words) == 2:
        text = words[1]
    task = words[0] if words else None
    if len(words) == 1 and text is None and not is_task_word(words[0]):
        # Where a task is understood, one word that is no id is the note itself.
        task, text = (None, words[0]) if session.project.here() else (task, None)
    session.outcome(note(session.project, task, text or "", artifacts=artifacts, seen=seen))
