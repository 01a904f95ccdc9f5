"""docs/commands.md from the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer.main

from twinlake.cli.app import GROUPS, build_app
from twinlake.reference import row

HEAD = """# Commands

Made from the code by `python -m twinlake.reference`; a test compares. `twinlake COMMAND --help` says
the same, and `twinlake --install-completion` has bash, zsh and fish complete it.

Before a command stand `--home DIR` (the data directory; else `$TWINLAKE_HOME`, or `.twinlake` in the project)
and `--project DIR`. Results go to stdout, words about the work and errors to stderr. `--json` prints one JSON
value on stdout, an error too: `{"error", "what", "why", "remedy"}`. [What --json prints](json.md) has each.

| exit code | |
|---|---|
| 0 | done, and all is as it should be |
| 1 | done, and something differs, fails a check, or needs somebody; or it failed |
| 2 | used wrongly: a name, a value or a file that cannot be; nothing was changed |
| 3 | a service is away, or does not answer; of `dev --once` and `diff --sample`: only Spark can say |
| 5 | of `twinlake test`: there was nothing to run |
| 130 | ended by ^C |
| 141 | nobody reads stdout any more |
"""
_TYPES = {int: "NUMBER", float: "NUMBER", Path: "FILE"}


def text() -> str:
    """The whole page."""
    tree: Any = typer.main.get_command(build_app())
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _of(f"twinlake {name}", tree.commands[name])
    return "\n".join(parts).rstrip() + "\n"


def _of(name: str, command: Any) -> Iterator[str]:
    commands = getattr(command, "commands", {})
    # what a group does by itself: a command of it, or what its own function does
    alone = commands.get(getattr(command, "alone", None), command)
    arguments = [one for one in alone.params if one.param_type_name == "argument"]
    options = [one for one in alone.params if one.param_type_name == "option"]
    needed = ["COMMAND"] if commands and alone is command and not command.invoke_without_command else []
    words = [name, *needed, *map(_argument, arguments), *(["[OPTIONS]"] if needed or options else [])]
    yield f"### {name}\n"
    if not command.hidden:
        yield f"`{' '.join(words)}`\n"
    yield _lines(command.help)
    yield ""
    if command.hidden:  # another name of a group
        return
    if alone is command:
        yield from _table(arguments, options)
    for below, one in commands.items():
        yield from _of(f"{name} {below}", one)


def _table(arguments: list[Any], options: list[Any]) -> Iterator[str]:
    if arguments or options:
        yield "| | |"
        yield "|---|---|"
        for one in arguments:
            yield row(f"`{_line(_argument(one))}`", _line(one.help))
        for one in options:
            yield row(f"`{_line(_option(one))}`", _line(one.help) + _default(one))
        yield ""


def _argument(one: Any) -> str:
    name = (one.metavar or one.name.upper()) + ("..." if one.nargs == -1 else "")
    return name if one.required else f"[{name}]"


def _option(one: Any) -> str:
    names = ", ".join(sorted(one.opts, key=len))
    if one.is_flag:
        return names
    return f"{names} {one.metavar or _TYPES.get(one.type_descriptor.annotation, 'TEXT')}"


def _default(one: Any) -> str:
    return f" ({one.default} unless given)" if one.default not in (None, False, "", []) else ""


def _line(words: str | None) -> str:
    return re.sub(r"\s+", " ", words or "").strip()


def _lines(words: str | None) -> str:
    return cleandoc(words or "").replace("\f", "").strip()
