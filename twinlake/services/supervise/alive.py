"""Whether anybody starts again what dies: the supervisor of a data directory, or of containers their own."""

from __future__ import annotations

from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record


def supervisor_alive(settings: Settings) -> bool:
    return record.of(settings, "supervisor").alive


def supervisor_error(settings: Settings) -> TwinlakeError | None:
    """What is wrong where the supervisor has ended; containers have none."""
    if supervisor_alive(settings) or folders_of(settings).containers.exists():
        return None
    return TwinlakeError(
        "the supervisor has ended", "a service that dies now is not started again",
        "`twinlake up` starts it again, and it goes on with the parts that live; "
        "`twinlake logs supervisor` says what it did last",
    )  # fmt: skip


def check_sql_server_is_supervised(settings: Settings) -> None:
    """UnreachableError where the SQL server does not answer and nobody will start it."""
    if error := supervisor_error(settings):
        raise UnreachableError("the SQL server does not answer", f"{error.what}: {error.why}", error.remedy)
