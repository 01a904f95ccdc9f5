"""Damage: what is said of a file of the lake that is not what was written there, and what can be done.

Where the file lies decides that: this module alone knows, for every place of the lake.
"""

from __future__ import annotations

import re

from twinlake.base.errors import DamagedError
from twinlake.base.location import Location

_AGAIN = "(`twinlake down`, `twinlake up`)"
_PLACES: tuple[tuple[str, str, str], ...] = (
    (
        r"(?P<folder>.*/tables/(?P<table>[^/]+)/(?P<version>[0-9a-f]{12}-\d+))(?:\.json|/.+)",
        "version {version} of table {table}",
        "build the table again from its log: `twinlake verify {table} --version {version}` (the plan goes by "
        "what it finds), then `twinlake plan`, `twinlake build`, `twinlake promote`",
    ),
    (
        r"(?P<folder>.*/logs/(?P<topic>[^/]+))/_delta_log/[^/]+",
        "the log of topic {topic}",
        "restore the file from a backup and start the lake server again " + _AGAIN + ". Without one, while "
        "Kafka still has the topic's records: `twinlake down`, move the folder {folder} away, `twinlake up` "
        "reads them again, then `twinlake plan`, `twinlake build`, `twinlake promote`",
    ),
    (
        r"(?P<folder>.*/logs/(?P<topic>[^/]+))/.+",
        "the log of topic {topic}",
        "restore the file from a backup; what waits for it is tried again by itself. Without one its records "
        "are lost to rebuilds and new versions; tables that have taken them already keep what they show",
    ),
    (
        r"(?P<folder>.*/releases)/.+",
        "the release log",
        "restore the file from a backup. Without one move the folder {folder} away: which versions were live "
        "before, and who approved them, is lost; `twinlake plan`, `twinlake build` and `twinlake promote` "
        "make the tables live again",
    ),
    (
        r"(?P<folder>.*/certificates)/.+",
        "the certificates",
        "restore the file from a backup, or move the folder {folder} away, and start the lake server again "
        + _AGAIN + ": `twinlake verify` makes new ones",
    ),
    (
        r"(?P<folder>.*/runs)/.+",
        "the list of jobs",
        "restore the file from a backup, or move the folder {folder} away, and start the lake server again "
        + _AGAIN + ": what jobs did stays, the list of them begins again",
    ),
    (
        r".*/plans/.+",
        "a plan",
        "delete the file and make a new plan with `twinlake plan`",
    ),
    (
        r".*/topics/(?P<topic>[^/]+)\.json",
        "the contract and schemas of topic {topic} that readers go by",
        "start the lake server again " + _AGAIN + ": it writes the file",
    ),
    (
        r".*/changelogs/(?P<table>[^/]+)\.json",
        "the changelog of table {table}",
        "delete the file, start the lake server again " + _AGAIN + ", then `twinlake changelog {table}` "
        "with its topic",
    ),
    (
        r"(?P<folder>.*/published/(?P<table>[^/]+))/.+",
        "what is published of table {table}",
        "delete the folder {folder}: the table is published again by itself, from what it shows",
    ),
    (
        r".*/webhooks/(?P<table>[^/]+)\.json",
        "the webhook of table {table}",
        "delete the file, start the lake server again " + _AGAIN + ", then `twinlake webhook {table}` "
        "with its address",
    ),
    (
        r".*/webhooks/positions/(?P<table>[^/]+)\.json",
        "how far the webhook of table {table} is",
        "delete the file and start the lake server again " + _AGAIN + ": changes from then on are posted, "
        "and all of it first where it was started with --from beginning",
    ),
    (
        r".*/publications/(?P<table>[^/]+)\.json",
        "what says that table {table} is published",
        "delete the file, start the lake server again " + _AGAIN + ", then `twinlake publish {table}`",
    ),
)  # fmt: skip


def table_of(file: Location) -> Location | None:
    """The Delta table that a data file or a commit is of, by where it lies; None for any other file."""
    table = file.parent
    while "=" in table.name or table.name == "_delta_log":  # folders of partitions
        table = table.parent
    for pattern, _, _ in _PLACES:
        match = re.fullmatch(pattern, str(file))
        if match and match.groupdict().get("folder") == str(table):
            return table
    return None


def damaged(file: Location | str, found: str, expected: str = "") -> DamagedError:
    """The error for a file of the lake: what was found there, what was expected, what can be done."""
    path = str(file)
    owner, remedy = "the lake", "restore the file from a backup"
    facts = {"file": path, "found": found, "expected": expected}
    for pattern, whose, cure in _PLACES:
        if match := re.fullmatch(pattern, path):
            named = match.groupdict()
            owner, remedy = whose.format(**named), cure.format(**named)
            facts |= {name: value for name, value in named.items() if name != "folder"}
            break
    why = f"{found}; expected: {expected}" if expected else found
    return DamagedError(f"a file of {owner} is damaged: {path}", why, remedy, {**facts, "belongs_to": owner})
