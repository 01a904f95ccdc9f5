"""Events: the valid records that meet `where`, with its columns; a store changes nothing of what is shown."""

from __future__ import annotations

from twinlake.witness.result import Asked, Result, Shown
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_ID


def events(asked: Asked) -> Result:
    rows = stepped(asked.database, asked.question, asked.definition)
    columns = {name: Shown(type_) for name, type_ in rows.types.items()}
    return Result(f"SELECT * FROM {rows.relation}", RECORD_ID, columns, is_whole=False)
