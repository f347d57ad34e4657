"""Installs this checkout the way a user has it: a wheel with byte code, in an environment of its own."""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]
REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


class Installation(NamedTuple):
    """An environment with the tool in it: its interpreter and its command."""

    python: str
    command: str


def install(folder: Path) -> Installation:
    """Builds the wheel and installs it, with the libraries that the running interpreter has.

    Nothing is fetched: what the wheel needs is copied from here.
    """
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel"))
    (wheel,) = (folder / "wheel").glob("*.whl")
    home = folder / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    python = home / "bin" / "python"
    _run(
        *(sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"),
        *("install", "-q", "--no-index", "--no-deps", str(wheel)),
    )
    (packages,) = (home / "lib").glob("python*/site-packages")
    _copy_requirements("gittasks", packages)
    compileall.compile_dir(packages, quiet=2)
    return Installation(str(python), str(home / "bin" / "git-tasks"))


def _run(*argv: str) -> None:
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")


def _copy_requirements(name: str, target: Path) -> None:
    """Copies what a distribution needs, and what that needs, as far as it is installed here."""
    seen = {name}
    waiting = list(_wheel_requirements(target))
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = importlib.metadata.distribution(wanted)
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in found.files or ():
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(os.fspath(file.locate()), target / file)
        waiting += _names(found.requires or ())


def _wheel_requirements(target: Path) -> list[str]:
    (found,) = importlib.metadata.distributions(path=[str(target)])
    return _names(found.requires or ())


def _names(requirements: list[str] | tuple[()]) -> list[str]:
    names = []
    for text in requirements:
        match = REQUIREMENT.match(text)
        if match and "extra ==" not in text:
            names.append(match[0])
    return names
