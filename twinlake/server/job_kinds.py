"""What a kind of job is: the shape of its parameters, and the handler that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from twinlake.base.job import Failed, Result, Run
from twinlake.base.strict import Plain
from twinlake.lake.open_lake import OpenLake

Handler = Callable[[OpenLake, Any, Run], Result | Failed]
"""`handler(lake, params, run)` runs in a thread of its own. It raises a TwinlakeError to fail without a
result, and calls `run.check_cancelled()` between parts that may be left apart."""


Name = Annotated[str, Field(min_length=1, max_length=300)]
"""Of a table, a version, a topic, a plan: what it names is looked up by whoever acts on it."""


class Params(Plain):
    """Base of all job parameters."""


@dataclass(frozen=True, kw_only=True)
class JobKind:
    params: type[Params]
    handler: Handler
    urgent: bool = False
    """Never waits for jobs that are not: it has workers of its own."""
