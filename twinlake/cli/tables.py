"""`twinlake tables` and `twinlake describe`: which tables there are, and what one of them means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from twinlake.cli.jobs import AS_JSON, lake_client
from twinlake.cli.output import Words, print_json, say, show_rows, tell
from twinlake.services.lake_status import tables_of

LATE_S = 60.0
"""A table that is further behind is shown so."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("tables")(tables_command)
    app.command("describe")(describe_command)


def tables_command(as_json: AS_JSON = False) -> None:
    """Every table, live or not: its version, how far it is behind, and whether speed and batch agree."""
    found = tables_of(lake_client().status_when_ready())
    if as_json:
        print_json(found)
    elif found:
        show_rows(("table", "state", "live version", "behind", "speed and batch"), map(_row, found))
    else:
        say("there is no table yet")
        tell("next: twinlake new table, or twinlake plan for the definitions of the project")


def describe_command(
    table: Annotated[str, typer.Argument(help="the name of a table")], as_json: AS_JSON = False
) -> None:
    """What a table means: its rows, keys and columns, what it is made of, and what reads it."""
    found = lake_client().table(table)
    if as_json:
        print_json(found)
        return
    say((found["name"], "bold"), f": {found['purpose']} {found['row']}".rstrip())
    say("")
    facts = {
        "kind": found["kind"] + ("" if found["stored"] else ", computed when it is read"),
        "live version": found["live"] or "none", "keys": _list(found["keys"]),
        "topics": _list(found["topics"]),
        "reads": _list(found["reads"]), "read by": _list(found["read_by"]),
        "rows decided by": _list(map(_source, found["decided_by"])),
        "certified": _newest(found["certificates"]),
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            say((f"{name:<16}", "bold"), value)
    say("")
    show_rows(
        ("column", "type", "meaning", "made of"),
        [
            (one["name"] + (" (key)" if one["key"] else ""), one["type"], one["meaning"],
             _list(map(_source, one["made_of"])))
            for one in found["columns"]
        ],
    )  # fmt: skip
    tell(f'next: twinlake query "SELECT * FROM {found["name"]} LIMIT 10"')


def _row(one: Mapping[str, Any]) -> Sequence[Words]:
    behind = one["behind_seconds"]
    agree: dict[bool | None, Words] = {
        True: ("equal", "green"), False: ("different", "red"), None: "not certified yet"
    }  # fmt: skip
    is_bad = one["state"] in ("stalled", "lost")
    late = behind is not None and behind > LATE_S
    return (
        one["table"], (one["state"], "red" if is_bad else ""), one["version"] if one["live"] else "none",
        ("" if behind is None else f"{behind:,.1f} s", "yellow" if late else ""), agree[one["equal"]],
    )  # fmt: skip


def _newest(certificates: Sequence[Mapping[str, Any]]) -> str:
    if not certificates:
        return "not yet"
    newest = certificates[0]
    words = "speed and batch are equal" if newest["equal"] else "speed and batch differ"
    return f"{words} over {newest['covers']}, {newest['rows_compared']:,} rows, {newest['created_at']}"


def _source(one: Mapping[str, str]) -> str:
    return f"{one['owner']}.{one['column']}"


def _list(names: Any) -> str:
    return ", ".join(names)
