"""Query: the SQL server's small HTTP door, for `twinlake query` and for whoever waits until it has followed.

It asks for the readers' user and password (HTTP Basic), `/status` excepted. A web page cannot use it: a
request needs the header X-Twinlake-Query and a loopback Host. One statement, a limited number of rows.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBasic
from pydantic import BaseModel, ConfigDict, Field

from jobs.as_json import to_json
from jobs.errors import BusyError, NotFoundError, TwinlakeError, UsageError, malformed
from jobs.lake.plans import Plans
from jobs.reading.follower import Followed
from jobs.reading.protection import Protection
from jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADER = "x-twinlake-query"
LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}
DEFAULT_LIMIT = 10_000
LARGEST_LIMIT = 1_000_000
LONGEST_SQL = 100_000
AT_ONCE = 4
WAIT_S = 30.0
LONGEST_S = 300.0

BASIC = HTTPBasic(realm="Twinlake", auto_error=False)
REPORT_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Asked(BaseModel):
    """The body of POST /query."""

    model_config = ConfigDict(extra="forbid")
    sql: str = Field(min_length=1, max_length=LONGEST_SQL)
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=LARGEST_LIMIT)


class Reader:
    """Runs statements for readers, each in a session of its own over the shared views."""

    def __init__(
        self, spark: SparkSession, followed: Callable[[], Followed], longest_s: float = LONGEST_S
    ) -> None:
        self._spark = spark
        self._followed = followed
        self._longest_s = longest_s
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def read(self, sql: str, limit: int) -> dict[str, Any]:
        """The columns and at most `limit` rows; UsageError says what is wrong with the statement."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        if not self._slots.acquire(timeout=WAIT_S):
            raise BusyError(
                "the query was not started",
                f"{AT_ONCE} others are running since {WAIT_S:g} s",
                "ask again later",
            )
        try:
            return self._read(sql, limit)
        except (PySparkException, Py4JJavaError) as error:
            raise self._failed(error) from error
        except UnicodeError as error:
            raise UsageError(
                "the query failed", f"a text is not UTF-8: {error}"[:300], "select it as hex(...)"
            ) from error
        finally:
            self._slots.release()

    def _failed(self, error: Exception) -> UsageError:
        from pyspark.errors import UnsupportedOperationException

        why = _message(error)
        if isinstance(error, UnsupportedOperationException):
            return UsageError("the query was refused", why)
        if "TABLE_OR_VIEW_NOT_FOUND" not in why:
            return UsageError("the query failed", why, "correct the statement")
        if self._followed().release is None:
            return UsageError(
                "the query failed",
                f"{why} Nothing has been released yet, so there are no views.",
                "`twinlake up` makes the first release; `twinlake status` shows the live one",
            )
        return UsageError("the query failed", why, "see what there is with SHOW VIEWS IN serve")

    def _read(self, sql: str, limit: int) -> dict[str, Any]:
        session = self._spark.newSession()
        tag = f"query-{uuid4().hex}"
        late = threading.Event()

        def cancel() -> None:
            late.set()
            self._spark._jsparkSession.sparkContext().cancelJobsWithTag(tag)

        timer = threading.Timer(self._longest_s, cancel)
        timer.daemon = True
        context = session.sparkContext
        context.addJobTag(tag)
        timer.start()
        try:
            frame = session.sql(sql)
            names = _unique(frame.columns)
            found = _collected(frame.limit(limit + 1).toDF(*names))
        except Exception as error:
            if late.is_set():
                raise BusyError(
                    "the query was stopped",
                    f"it ran longer than {self._longest_s:g} s",
                    "ask for less, or use JDBC for long queries",
                ) from error
            raise
        finally:
            timer.cancel()
            context.removeJobTag(tag)
        return {
            "columns": [
                {"name": name, "type": type_} for name, (_, type_) in zip(names, frame.dtypes, strict=True)
            ],
            "rows": [to_json(row) for row in found[:limit]],
            "truncated": len(found) > limit,
        }


def _collected(frame: DataFrame) -> list[Any]:
    """All rows; by Arrow (faster) unless a column is nested: it refuses fields that are never null."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if any(
        isinstance(column.dataType, (ArrayType, MapType, StructType, VariantType)) for column in frame.schema
    ):
        return frame.collect()
    found: list[Any] = frame.toArrow().to_pylist()
    return found


def _unique(names: list[str]) -> list[str]:
    """Rows are objects: a second column of the same name gets a number that no other column has."""
    made: list[str] = []
    for name in names:
        free = (f"{name}_{number}" for number in count(2))
        made.append(name if name not in made else next(one for one in free if one not in {*names, *made}))
    return made


def _message(error: Exception) -> str:
    """What Spark says, without its plans and JVM stack traces."""
    raised = getattr(error, "java_exception", None)  # of a kind that PySpark does not know
    text = str((raised.getMessage() or raised.toString()) if raised else error)
    text, _, _ = text.partition("\n\nJVM stacktrace:")
    return re.split(r";\n['+]|\nTo tolerate|\nIf you did not qualify", text.strip())[0].strip()


def build_app(
    reader: Reader, followed: Callable[[], Followed], settings: Settings, admits: Callable[[str, str], bool]
) -> FastAPI:
    """Status, query and the reports of plans; `admits` judges user and password for all but the first."""
    app = FastAPI(title="Twinlake SQL server", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def only_from_here(request: Request, call_next: Any) -> Any:
        host = re.sub(r":\d+$", "", request.headers.get("host", ""))
        if host not in LOOPBACK:
            return _refused(
                403, UsageError(f"host {host!r} is not served", "this door is for loopback only", "")
            )
        if request.url.path == "/status":
            return await call_next(request)
        try:
            given = await BASIC(request)
        except HTTPException:  # it is no Basic authorization at all
            given = None
        if given is None or not await run_in_threadpool(admits, given.username, given.password):
            unknown = UsageError(
                "the request was refused", "its user or password is missing or wrong",
                "take sql_user and sql_password from services.json",
            )  # fmt: skip
            return JSONResponse(unknown.to_json(), 401, headers=BASIC.make_authenticate_headers())
        return await call_next(request)

    @app.exception_handler(TwinlakeError)
    async def told(_: Request, error: TwinlakeError) -> JSONResponse:
        code = 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 503
        return _refused(code, error)

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> JSONResponse:
        return _refused(400, malformed(error.errors()))

    @app.get("/status")
    def status() -> dict[str, Any]:
        now = followed()
        held = Protection.of_this_process(settings).to_json()
        return {"release": now.release, "ready": now.ready, "error": now.error, "protection": held}

    @app.post("/query")
    def query(asked: Asked, request: Request) -> JSONResponse:
        if request.headers.get(HEADER) != "1":
            return _refused(
                403, UsageError("the query was refused", "it has no header X-Twinlake-Query: 1", "")
            )
        release = followed().release
        return JSONResponse({**reader.read(asked.sql, asked.limit), "release": release})

    @app.get("/reports/{plan}")
    def report(plan: str) -> HTMLResponse:
        file = Plans(settings.lake).report_file(plan)
        if not file.is_file():
            raise NotFoundError(
                f"plan {plan} has no report", "it was not compared yet", "run `twinlake diff`"
            )
        return HTMLResponse(file.read_text(encoding="utf-8"), headers=REPORT_HEADERS)

    return app


def _refused(code: int, error: TwinlakeError) -> JSONResponse:
    return JSONResponse(error.to_json(), status_code=code)
