"""What a kind of job is: the shape of its parameters, and the handler that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from jobs.lake.open_lake import OpenLake
from jobs.run import Failed, Result, Run

Handler = Callable[[OpenLake, Any, Run], Result | Failed]
"""`handler(lake, params, run)` runs in a thread of its own. It raises a TwinlakeError to fail without a
result, and calls `run.check_cancelled()` between parts that may be left apart."""


class Params(BaseModel):
    """Base of all job parameters: an unknown one is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, kw_only=True)
class JobKind:
    params: type[Params]
    handler: Handler
    urgent: bool = False
    """Never waits for jobs that are not: it has workers of its own."""
