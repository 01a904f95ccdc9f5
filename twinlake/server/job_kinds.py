"""What a kind of job is: its model, and the handler that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twinlake.base.job import Failed, Result, Run
from twinlake.lake.open_lake import OpenLake
from twinlake.server.job_models import Params

Handler = Callable[[OpenLake, Any, Run], Result | Failed]
"""`handler(lake, params, run)` runs in a thread of its own. It raises a TwinlakeError to fail without a
result, and calls `run.check_cancelled()` between parts that may be left apart."""


@dataclass(frozen=True, kw_only=True)
class JobKind:
    params: type[Params]
    handler: Handler
    urgent: bool = False
    """Never waits for jobs that are not: it has workers of its own."""
