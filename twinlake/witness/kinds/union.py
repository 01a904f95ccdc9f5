"""Union: what one table would show of the records of several topics, each by steps of its own."""

from __future__ import annotations

from dataclasses import replace

from twinlake.witness.kinds.aggregate import aggregate
from twinlake.witness.kinds.latest import latest
from twinlake.witness.kinds.sessions import sessions
from twinlake.witness.kinds.top_rows import top_rows
from twinlake.witness.question import UNITED
from twinlake.witness.refused import Refused
from twinlake.witness.result import Asked, Result

_OF = {"aggregate": aggregate, "sessions": sessions, "latest": latest, "top_rows": top_rows}


def union(asked: Asked) -> Result:
    tables = [asked.question.reads[name].definition for name in asked.definition["of"]]
    kind = tables[0]["kind"]
    if kind not in _OF:
        raise Refused(f"kind {kind}", "the witness does not know it as one of several topics")
    result = _OF[kind](replace(asked, definition={**tables[0], UNITED: tables}))
    return replace(result, sources=(), unlisted="its records are of several topics")
