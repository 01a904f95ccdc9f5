"""docs/api.md from the code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import getdoc, signature
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute

from twinlake.server.all_jobs import KINDS
from twinlake.server.api import LARGEST_BODY, LONGEST_WAIT_S, NewJob, Served, build_app
from twinlake.server.job_fields import fields
from twinlake.server.job_kind import JobKind

HEAD = f"""# The lake server's API

Made from the code by `python -m twinlake.reference`; a test compares.

Loopback only, at `api_url` of `services.json`, with `Authorization: Bearer <api_token>` for all but
`/health`. Bodies are JSON of at most {LARGEST_BODY >> 20} MiB, waits at most {LONGEST_WAIT_S:g} s. Errors are
`{{"error": class, "what": ..., "why": ..., "remedy": ..., ...}}` with status 400 (the request is
wrong), 401 (the token), 404 (no such thing), 405 (not by this method), 409 (not now), 413 or 431 (too
large) or 500 (an error of the server's own).

A value has exactly the JSON type that is meant: where that is a whole number, `true`, `1.0`, `"1"` and what
is beyond 64 bits are refused; a flag is `true` or `false`; a name is not empty. NaN, and a NUL character in a
text, are refused anywhere.
"""


def routes(app: FastAPI) -> Iterator[str]:
    yield "| route | takes | does |"
    yield "|---|---|---|"
    for route in app.routes:
        if not isinstance(route, APIRoute):
            continue
        (method,) = route.methods
        takes = [
            f"body: {', '.join(NewJob.model_fields)}" if each.annotation == NewJob.__name__ else f"`{name}`"
            for name, each in signature(route.endpoint).parameters.items()
        ]
        yield f"| `{method} {route.path}` | {', '.join(takes) or '-'} | {_first_line(route.endpoint)} |"


def kinds(of: Mapping[str, JobKind]) -> Iterator[str]:
    yield "| kind | does |"
    yield "|---|---|"
    for name, kind in sorted(of.items()):
        yield f"| `{name}`{' (urgent)' if kind.urgent else ''} | {_first_line(kind.params)} |"


def parameters(of: Mapping[str, JobKind]) -> Iterator[str]:
    yield "| kind | parameter (* required) | JSON | is |"
    yield "|---|---|---|---|"
    for name, kind in sorted(of.items()):
        for field in fields(kind.params):
            mark = "*" if field.required else ""
            yield f"| `{name}` | `{field.name}`{mark} | {field.type} | {field.described} |"


def text() -> str:
    app = build_app(cast(Served, None), "")
    lines = [
        HEAD, *routes(app), "", "## Kinds of jobs",
        "`POST /jobs` names one. A `key` makes it once: the same key again answers with the same job. An",
        "urgent one has workers of its own.", "",
        *kinds(KINDS), "", *parameters(KINDS),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _first_line(what: Any) -> str:
    return (getdoc(what) or "").splitlines()[0]
