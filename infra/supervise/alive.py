"""Whether anybody starts again what dies: the supervisor of a data directory, or of containers their own."""

from __future__ import annotations

from infra.parts.folders import folders_of
from infra.supervise import record
from jobs.errors import TwinlakeError, UnreachableError
from jobs.settings import Settings


def supervisor_alive(settings: Settings) -> bool:
    return record.of(settings, "supervisor").alive


def supervisor_error(settings: Settings) -> TwinlakeError | None:
    """What is wrong where the supervisor has ended; containers have none."""
    if supervisor_alive(settings) or folders_of(settings).containers.exists():
        return None
    return TwinlakeError(
        "the supervisor has ended", "a part that dies now is not started again",
        "`twinlake up` starts it again, and it goes on with the parts that live; "
        "`twinlake logs supervisor` says what it did last",
    )  # fmt: skip


def check_sql_server_is_supervised(settings: Settings) -> None:
    """UnreachableError where the SQL server does not answer and nobody will start it."""
    if error := supervisor_error(settings):
        raise UnreachableError("the SQL server does not answer", f"{error.what}: {error.why}", error.remedy)
