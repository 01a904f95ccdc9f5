"""The log of a server: one JSON object a line, with what happened and what it happened to.

Fields: `timestamp` (RFC 3339, UTC), `level`, `logger`, `event`, `exception` where there was one, and whatever
is known of `job`, `table`, `version`, `topic`, `batch`. Lines of other libraries have the same form.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import structlog

CHATTY = ("py4j", "httpx", "httpx2", "great_expectations")


def start() -> None:
    """From here on everything this process logs is a JSON line on stderr; call it once, at the start."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    threading.excepthook = _thread_ended


def _thread_ended(error: threading.ExceptHookArgs) -> None:
    """Python writes such a traceback piece by piece, in between the lines of other threads."""
    if error.exc_type is SystemExit or error.exc_value is None:
        return
    name = error.thread.name if error.thread else ""
    logging.getLogger(__name__).error("thread %s ended by an error", name, exc_info=error.exc_value)


def about(facts: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Inside it, every line of this thread carries these facts, such as the job that is done."""
    bound: AbstractContextManager[None] = structlog.contextvars.bound_contextvars(**facts)  # type: ignore[assignment]
    return bound
