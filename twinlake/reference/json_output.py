"""docs/json.md from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import getdoc

from twinlake.base.errors import TwinlakeError
from twinlake.cli.app import GROUPS
from twinlake.cli.shapes import operating as of_operating
from twinlake.cli.shapes import reading as of_reading
from twinlake.cli.shapes import results as of_results
from twinlake.cli.shapes import sampled as of_sampled
from twinlake.cli.shapes import status as of_status
from twinlake.cli.shapes.shared import SHARED
from twinlake.cli.shapes.value import Keys, Value, alternatives
from twinlake.reference import row

HEAD = """# What --json prints

Made from the code by `python -m twinlake.reference`; a test compares, and others hold what is written here
to what the commands print.

- A command with `--json` prints one JSON value on stdout, and words about the work on stderr.
- An error is `{"error", "what", "why", "remedy"}`: the class, what happened, the cause, and what to do; of
  what was typed wrongly, too. The exit code is that of [the command](commands.md).
- Times are RFC 3339 in UTC, like `2026-01-31T12:00:00Z`, and durations seconds. Sizes are bytes.
- Values of rows: decimals are strings, so that no digit is lost; so are NaN and infinities; dates are
  `2026-01-31`, bytes hex digits.
- A key is there even where its value is null or empty, but for those that "may be missing".
- A later version may add keys: leave out what you do not know. None is removed, or gets another type,
  without a line in CHANGELOG.md.

In the tables `a.b` is the key `b` of the object `a`; where `a` is a list of objects, of each of them, and
where it is an object of objects, of each of those. An object whose keys are not listed has keys that depend
on the data: topics, columns, parameters.
"""
COMMANDS: dict[str, Value] = {one.name: one for one in (
    of_status.STATUS, of_operating.DISK, of_status.DOCTOR, of_status.CHECK, of_operating.PRODUCE,
    of_operating.GALLERY,
    of_results.PLAN, of_results.BUILD, of_results.DIFF, of_sampled.SAMPLED, of_results.GATE_ASKED,
    of_results.PROMOTE,
    of_results.REJECT, of_results.ROLLBACK, of_operating.RELEASES, of_results.RETIRE, of_results.RELOAD,
    of_results.ACCEPT,
    of_reading.TABLES, of_reading.DESCRIBE, of_reading.QUERY, of_reading.GET, of_reading.EXPLAIN,
    of_results.CHANGELOG, of_results.PUBLISH, of_results.WEBHOOK,
    of_results.VERIFY, of_results.REBUILD, of_reading.QUARANTINE, of_results.REPLAY,
    of_operating.JOBS, of_operating.FOLLOW, of_operating.CANCEL, of_reading.QUERIES,
    of_reading.QUERIES_CANCEL, of_results.PAUSE, of_results.RESUME, of_operating.ALARMS, of_operating.AUDIT,
    of_operating.USERS, of_operating.ROTATE, of_operating.BACKUP_TAKE, of_operating.BACKUP_LIST,
    of_operating.BACKUP_VERIFY, of_operating.RESTORE, of_results.EXPIRE, of_results.MAINTAIN,
    of_operating.SUPPORT, of_operating.UPGRADE, of_operating.UPGRADE_DONE,
)}  # fmt: skip
"""By command, without `twinlake`, what it prints; by command and option, where an option changes that."""


def text() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, commands in GROUPS.items():
        parts.append(f"## {title}\n")
        for command in commands:
            for one in COMMANDS.values():
                if one.name.split()[0] == command:
                    parts += _section(f"twinlake {one.name}", one)
    parts.append("## Shapes that several have\n")
    for one in SHARED.values():
        parts += _section(one.name, one)
    parts += ["## Classes of errors\n", *_errors(TwinlakeError)]
    return "\n".join(parts).rstrip() + "\n"


def _errors(base: type[TwinlakeError]) -> Iterator[str]:
    """A row for each that a command ends with, more special ones below what they are cases of."""
    if base is TwinlakeError:
        yield "| class | exit code | is |"
        yield "|---|---|---|"
    yield f"| `{base.__name__}` | {base.exit_code} | {getdoc(base)} |"
    for one in base.__subclasses__():
        if one.__module__ == TwinlakeError.__module__:
            yield from _errors(one)


def _section(title: str, one: Value) -> Iterator[str]:
    yield f"### {title}\n"
    yield f"{_linked(one.type).capitalize()}. {one.about}".rstrip() + "\n"
    if one.keys:
        yield "| key | JSON | is |"
        yield "|---|---|---|"
        yield from _rows(one.keys)
        yield ""


def _rows(keys: Keys, above: str = "") -> Iterator[str]:
    for one in keys:
        missing = "; may be missing" if one.is_optional else ""
        yield row(f"`{above}{one.name}`", _linked(one.type), one.about + missing)
        yield from _rows(one.keys, f"{above}{one.name}.")


def _linked(type_: str) -> str:
    """With a link for each shared shape in it."""
    return " or ".join(map(_link, alternatives(type_))) if "(" not in type_ else _inner(type_)


def _inner(type_: str) -> str:
    """`list of (X or null)`: the parentheses stay."""
    return re.sub(r"\(([^()]+)\)", lambda found: f"({_linked(found[1])})", type_)


def _link(type_: str) -> str:
    *of_what, name = type_.split(" of ")
    if name in SHARED:
        name = f"[{name}](#{name.replace(' ', '-')})"
    return " of ".join([*of_what, name])
