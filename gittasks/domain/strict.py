"""Reads what a person wrote into a document, and says all that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gittasks.domain.fields import BadDocument, Problem

if TYPE_CHECKING:
    from gittasks.domain.task import Task


def read(_data: bytes, file: str) -> tuple[Task, bytes]:
    """Returns the task and the body of a document; raises BadDocument."""
    raise BadDocument(file, [Problem(1, "", "", "The document is not in its canonical form.")])


def split(_data: bytes, file: str) -> tuple[bytes, bytes]:
    """Returns the header with its fences, and the body; raises BadDocument."""
    raise BadDocument(file, [Problem(1, "", "", "The header has no fences.")])


def check_field(_name: str, value: object) -> Any:
    """Returns the value as the task keeps it."""
    return value
