"""The kinds of jobs the lake server takes: the shape of their parameters and the handler that does them.

A handler is `handler(server, params, run) -> dict`: it runs in a thread of its own, raises a TwinlakeError to
fail, calls `run.check_cancelled()` between parts that may be left apart, and returns JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from jobs.run import Run

if TYPE_CHECKING:
    from jobs.server.lake_server import LakeServer

Handler = Callable[["LakeServer", Any, Run], dict[str, Any]]


class Params(BaseModel):
    """Base of all job parameters: an unknown one is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, kw_only=True)
class Kind:
    params: type[Params]
    handler: Handler
