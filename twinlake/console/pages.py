"""Pages: templates filled with values, every one of which is escaped; nothing here marks a text as safe but
the commands between backticks, whose text is escaped first."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from twinlake.base.errors import visible
from twinlake.base.times import Clock, parse_moment

_CODE = re.compile(r"`([^`]+)`")
LONGEST_CELL = 2_000


class Pages:
    """`now` is asked for the age of what has a time."""

    def __init__(self, now: Clock) -> None:
        self._templates = Environment(
            loader=PackageLoader("twinlake.console"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters.update(
            words=words, lines=lines, number=number, size=size, span=span, cell=cell,
            ago=partial(ago, now=now), json=indented, raw=raw,
        )  # fmt: skip

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """The template of this name, whole."""
        return HTMLResponse(self._templates.get_template(f"{template}.html").render(**values), status)


def words(text: Any) -> Markup:
    """A text with the commands between backticks set apart."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(str(text))))))


def lines(text: Any) -> Markup:
    """The same of a text with several lines, which stay lines."""
    return Markup("\n").join(map(words, str(text).split("\n")))


def number(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, (int, float)) else str(value)


def size(count: int) -> str:
    """Bytes in the unit that a person reads."""
    for unit, bytes_ in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= bytes_:
            return f"{count / bytes_:,.1f} {unit}"
    return f"{count:,} bytes"


def span(seconds: float | None) -> str:
    """A time span in its largest unit."""
    if seconds is None:
        return "unknown"
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s"


def ago(text: str | None, now: Clock) -> str:
    """How long ago a time of ours was."""
    if not text:
        return ""
    then: datetime = parse_moment(text)
    return f"{span(max(0.0, (now() - then).total_seconds()))} ago"


def indented(value: Any) -> str:
    """JSON for a person to read."""
    lines = json.dumps(value, indent=2, ensure_ascii=False, default=str).split("\n")
    return "\n".join(map(visible, lines))


def cell_text(value: Any) -> str:
    """A value of a row as text; of NULL none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cell(value: Any) -> str:
    """The same for a page: what breaks a line or turns its direction is shown as such, and it has an end."""
    text = cell_text(value)
    shown = visible(text[:LONGEST_CELL])  # a million such characters take a second
    if len(text) <= LONGEST_CELL and len(shown) <= LONGEST_CELL:
        return shown
    return f"{shown[:LONGEST_CELL]}… ({len(text):,} characters)"


def raw(value: str | None) -> str:
    r"""The bytes of a record, which answers have as hexadecimal digits, as text; what is none as `\x00`."""
    try:
        return cell(bytes.fromhex(value or "").decode(errors="backslashreplace"))
    except ValueError:  # it is something else
        return cell(value)
