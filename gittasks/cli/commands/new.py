"""`git tasks new`: writes down a task, or many from a file."""

from __future__ import annotations

from typing import Any

from gittasks.cli import frame, texts
from gittasks.domain.errors import UsageFault


@frame.command("new")
@frame.argument("words", nargs=-1, metavar="TITLE")
@frame.option("--title", metavar="TEXT", help="the title, instead of the argument")
@frame.option("-m", "messages", multiple=True, metavar="TEXT", help="the body; each a paragraph")
@frame.option("-F", "file", metavar="FILE", help="read the body from FILE, - is stdin")
@frame.option("--dep", "depends_on", multiple=True, metavar="TASK", help="wait for TASK")
@frame.option("--check", "checks", multiple=True, metavar="COMMAND", help="what has to exit 0")
@frame.option("--parent", metavar="TASK", help="stand below TASK")
@frame.option("--label", "labels", multiple=True, metavar="NAME", help="a label")
@frame.option("--priority", type=frame.IntRange(0, 4), metavar="0..4", help="0 is first; 2")
@frame.option("--assignee", metavar="NAME", help="who shall take it with --next")
@frame.option("--supersedes", metavar="TASK", help="replace TASK, which is aborted if open")
@frame.option("--follows", metavar="TASK", help="come after TASK, which is closed")
@frame.option("--idempotency-key", metavar="KEY", help="the same key again gives the same task")
@frame.option("--enter", type=frame.Choice(("design", "plan", "work")), help="dispatch it at once")
@frame.option("--from-file", metavar="FILE", help="create every task of FILE, - is stdin")
def command(
    session: frame.Session,
    words: tuple[str, ...],
    title: str | None,
    messages: tuple[str, ...],
    file: str | None,
    from_file: str | None,
    idempotency_key: str | None,
    **fields: Any,
) -> None:
    """Write down a task and print its id.

    With --from-file, FILE holds many tasks: in Markdown each heading `# Title` begins one, with
    lines such as `depends_on: KEY` right below it; otherwise one JSON object a line.
    """
    from gittasks.workflow import create
    from gittasks.workflow.answers import as_step

    if from_file is not None:
        if words or title or messages or file is not None or any(fields.values()):
            raise UsageFault(
                "With --from-file, everything about the tasks stands in the file.",
                "Leave the other options out; --idempotency-key may stay.",
            )
        made = create.create_all(
            session.project,
            session.read_text(from_file),
            "stdin" if from_file == "-" else from_file,
            idempotency_key=idempotency_key,
        )
        for one in made:
            for note in one.notes:
                session.out.say(note)
        if not session.answer("tasks", [as_step(one) for one in made]):
            session.out.rows([one.task.id for one in made])
        return
    if words and title is not None:
        raise UsageFault("The title is given twice.", "Give it as the argument or with --title.")
    if len(words) > 1:
        raise UsageFault("There is more than one title.", "Put the title in quotes.")
    wanted = {name: value for name, value in fields.items() if value not in (None, ())}
    new = create.New(
        words[0] if words else title or "",
        body=texts.given(session, messages, file),
        idempotency_key=idempotency_key,
        **wanted,
    )
    outcome = create.create(session.project, new)
    session.outcome(outcome, outcome.task.id)
