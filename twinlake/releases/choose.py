"""Choose: which definitions a plan takes as they are written, and which tables stay as they are live."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.kinds.kind import Kind

NOT_NAMED = "not named"


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """`tables` are what the plan makes live; `stays` says of each table that is not taken as written why.

    One that stays has its live definition in `tables`; a table that is not live is not there.
    """

    tables: dict[str, Kind]
    stays: dict[str, tuple[str, ...]]


def choose(
    written: Mapping[str, Kind], live: Mapping[str, Kind], stays: Mapping[str, tuple[str, ...]]
) -> Chosen:
    """All as they are written, but for `stays` and what follows from it.

    What reads a table that is not there does not come with it; what a table that stays reads, stays.
    """
    stays = dict(stays)
    while True:
        tables = {name: table for name, table in written.items() if name not in stays}
        tables |= {name: live[name] for name in stays if name in live}
        missing = [(name, read) for name, one in tables.items() for read in one.reads if read not in tables]
        before = len(stays)
        for name, read in missing:
            if name in stays and read in live:
                stays.setdefault(read, (f"{name}, which stays as it is, reads it",))
            elif name not in stays and read in stays:
                stays[name] = (f"it reads {read}, which is left out",)
        if len(stays) == before:  # what is missing now is missing in the definitions
            return Chosen(tables=tables, stays=stays)


def not_named(
    written: Mapping[str, Kind], live: Mapping[str, Kind], tables: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The tables that are neither among these nor read one of them, however indirectly.

    NotFoundError for a name that nothing has.
    """
    known = written.keys() | live.keys()
    for name in tables:
        if name not in known:
            raise NotFoundError(
                f"there is no table {name!r}", f"known: {', '.join(sorted(known))}", "name one of these"
            )
    taken = set(tables)
    while more := set(_readers(taken, written, live)) - taken:
        taken |= more
    return dict.fromkeys(sorted(known - taken), (NOT_NAMED,))


def not_found(
    written: Mapping[str, Kind], live: Mapping[str, Kind], remove: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The live tables without a definition: a file may be broken, or gone by mistake. They stay, unless
    `remove` names them."""
    gone = sorted(live.keys() - written.keys() - set(remove))
    why = "no definition of it was found; `twinlake plan --remove {}` removes it"
    return {name: (why.format(name),) for name in gone}


def refuse_unfound(tables: Collection[str], stays: Mapping[str, tuple[str, ...]]) -> None:
    """UsageError for a named table without a definition."""
    for name in tables:
        if name in stays:
            raise UsageError(
                f"table {name} has no definition to plan", "none was found in the project's files",
                f"see `twinlake check`; `twinlake plan --remove {name}` removes the table",
            )  # fmt: skip


def refuse_removal(remove: Collection[str], written: Mapping[str, Kind], live: Collection[str]) -> None:
    """UsageError for a table that is to be removed and is defined still; NotFoundError for one that is not
    live."""
    for name in remove:
        if name in written:
            raise UsageError(
                f"table {name} cannot be removed", "its definition is still among the project's files",
                "delete it there, then plan again",
            )  # fmt: skip
        if name not in live:
            known = ", ".join(sorted(live)) or "none"
            raise NotFoundError(f"there is no live table {name!r}", f"live: {known}", "name one of these")


def refuse_unmet(tables: Collection[str], chosen: Chosen) -> None:
    """UsageError for a named table that cannot be taken without another one."""
    for name in tables:
        if why := chosen.stays.get(name):
            raise UsageError(
                f"table {name} cannot be planned without another", why[0], "name that one, too, with --table"
            )


def refuse_read(chosen: Chosen, live: Mapping[str, Kind]) -> None:
    """UsageError for a live table that goes although others read it, with the names of all of them."""
    for name in sorted(live.keys() - chosen.tables.keys()):
        if readers := sorted(_readers({name}, chosen.tables)):
            raise UsageError(
                f"table {name} cannot be removed", f"it is read by: {', '.join(readers)}",
                "remove or change these, too, or keep the name as a view of another table (docs/releases.md)",
            )  # fmt: skip


def _readers(taken: set[str], *definitions: Mapping[str, Kind]) -> Iterable[str]:
    for some in definitions:
        for name, one in some.items():
            if not taken.isdisjoint(one.reads):
                yield name
