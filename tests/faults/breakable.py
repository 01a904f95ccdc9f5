"""The supervisor whose lake server and SQL server can be broken: run as a module, with `--home H`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from twinlake.services.all import all_parts
from twinlake.services.part import Command, Context, Part
from twinlake.services.supervise import supervisor

SERVERS = ("twinlake.server", "twinlake.reading")


def file_of(home: Path, part: str) -> Path:
    """What names the way to break a part; the SQL server sees no other folder of the home."""
    return home / ("sql" if part == "sql" else "run") / f"break-{part}"


def parts(given: Collection[str] = ()) -> tuple[Part, ...]:
    return tuple(_breakable(part) if part.name in ("lake", "sql") else part for part in all_parts(given))


def _breakable(part: Part) -> Part:
    plain = part.command
    assert plain

    def command(context: Context) -> Command:
        made = plain(context)
        (server,) = (word for word in made.arguments if word in SERVERS)
        at = made.arguments.index(server)
        file = file_of(context.settings.home, part.name)
        file.unlink(missing_ok=True)
        through = ("tests.breaking", str(file), *made.arguments[at:])
        return replace(made, arguments=(*made.arguments[:at], *through))

    return replace(part, command=command)


if __name__ == "__main__":
    supervisor.main(parts)
