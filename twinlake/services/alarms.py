"""The alarms: watches all services and tells who has to know. It listens to nobody and has no port."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

from twinlake.base.times import parse_moment, utc_now
from twinlake.services.lake import overrides_of
from twinlake.services.part import Command, Context, Part

BOOK = "alarms.json"
"""In the folder `run` of the data directory."""
LATE_S = 30.0
"""It looks every two seconds."""


def parts() -> tuple[Part, ...]:
    return (Part(name="alarms", service="alarms", command=_command, probe=_probe),)


def _command(context: Context) -> Command:
    return Command(
        arguments=(
            sys.executable, "-m", "twinlake.alarms", "--home", str(context.settings.home),
            "--project", str(context.settings.project.root), "--settings", str(context.settings.file),
        ),
        environ={
            "PYTHONUNBUFFERED": "1", "TWINLAKE_HOME": str(context.settings.home), **overrides_of(context),
        },
    )  # fmt: skip


def _probe(context: Context) -> str:
    """By its book, which it writes after each look."""
    file = context.settings.run_dir / BOOK
    try:
        book = json.loads(file.read_text())
        looked_at = parse_moment(book["looked_at"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConnectionError(f"it has not looked yet: {error}") from error
    if utc_now() - looked_at > timedelta(seconds=LATE_S):
        raise ConnectionError(f"it has looked last at {book['looked_at']}")
    raised = len(book["alarms"])
    return f"{raised} alarm{'' if raised == 1 else 's'}"
