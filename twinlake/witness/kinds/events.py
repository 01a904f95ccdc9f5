"""Events: the valid records that meet `where`, with its columns; a store changes nothing of what is shown."""

from __future__ import annotations

from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_ID


def events(asked: Asked) -> Result:
    rows = stepped(asked.database, asked.question, asked.definition)
    columns = {name: Shown(type_) for name, type_ in rows.types.items()}
    (topic,) = asked.definition["inputs"]
    # one that `where` leaves out is a record, too
    source = Source(topic, f"SELECT * FROM {rows.source}", RECORD_ID)
    return Result(f"SELECT * FROM {rows.relation}", RECORD_ID, columns, is_whole=False, sources=(source,))
