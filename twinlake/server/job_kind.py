"""A kind of job: what may be asked of it, and what does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from twinlake.base.errors import UsageError, faults_text
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

    def asked(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as JSON has them, what is not given included; UsageError where they are wrong.

        So is a text that no UTF-8 can hold: it would be accepted, and could never be shown again.
        """
        try:
            plain = self.params.model_validate(dict(params)).model_dump(mode="json", by_alias=True)
            json.dumps(plain, ensure_ascii=False).encode()
        except ValidationError as error:
            why = faults_text(error.errors())
            raise UsageError(f"the parameters of {name} are wrong", why, "correct them") from error
        except UnicodeEncodeError as error:
            why = str(error)
            raise UsageError(f"the parameters of {name} are wrong", why, "send valid Unicode") from error
        return plain

    def as_now(self, params: dict[str, Any]) -> dict[str, Any]:
        """What an earlier Twinlake was asked for, with what a job of this kind may be asked since."""
        try:
            return self.params.model_validate(params).model_dump(mode="json", by_alias=True)
        except ValidationError:
            return params
