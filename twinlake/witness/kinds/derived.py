"""Derived: one SELECT over the rows that the tables it reads show."""

from __future__ import annotations

from twinlake.witness.refused import Refused
from twinlake.witness.result import BY_ITS_SIZE, BY_WHAT_IS_ADDED, EXACTLY, Asked, Result, Shown
from twinlake.witness.select import translate_select
from twinlake.witness.text import RECORD_ID


def derived(asked: Asked) -> Result:
    """Doubles have no scale of their own: they compare by their size."""
    definition = asked.definition
    tables = {}
    for name in definition["reads"]:
        shown = asked.question.reads[name].shown
        if shown is None:
            raise Refused(f"table {name}", "nobody has written the rows that it shows")
        _, tables[name] = asked.database.rows(name, shown)
    found = translate_select(definition["sql"], tables)
    if list(found.columns) != definition["columns"]:
        raise Refused("its SELECT", f"the witness reads its columns as {', '.join(found.columns)}")
    for name in definition["keys"]:
        if name in found.approximate:
            raise Refused(f"key {name}", "it is made of sums of doubles")
    columns = {}
    for name, type_ in found.columns.items():
        rule = BY_ITS_SIZE if type_.is_floating else EXACTLY
        if name in found.approximate:
            rule = BY_WHAT_IS_ADDED if name in found.sized else rule.unsure
        columns[name] = Shown(type_, rule)
    return Result(found.sql, tuple(definition["keys"]), columns, unlisted=_made_of(asked))


def _made_of(asked: Asked) -> str:
    """Of which rows a SELECT makes one is not known: what is, are the keys of the tables that it reads."""
    keys = (
        f"{name} ({', '.join(read.definition.get('keys') or RECORD_ID)})"
        for name, read in asked.question.reads.items()
    )
    return f"its SELECT makes it of rows of {', '.join(keys)}"
