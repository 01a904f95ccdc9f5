"""Report: a plan, its differences and its gate as one plain HTML page that loads nothing and runs nothing.

Values come from records that anybody may have produced: everything is escaped, long texts are cut.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jobs.batch.diff import Diff
from jobs.releases.gate import Gate
from jobs.releases.plan import Plan, plan_file

LONGEST_VALUE = 200

_pages = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


def report_file(lake: Path, plan: str) -> Path:
    """Beside the plan."""
    return plan_file(lake, plan).with_suffix(".html")


def write(
    lake: Path, plan: Plan, diffs: Sequence[Diff], gate: Gate | None, greens: Mapping[str, str], made_at: str
) -> Path:
    """The page beside the plan, replaced as a whole."""
    file = report_file(lake, plan.id)
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".html.new")
    beside.write_text(render(plan, diffs, gate, greens, made_at), encoding="utf-8")
    os.replace(beside, file)
    return file


def render(
    plan: Plan, diffs: Sequence[Diff], gate: Gate | None, greens: Mapping[str, str], made_at: str
) -> str:
    """The page as text."""
    return _pages.get_template("report.html").render(
        plan=plan, diffs=diffs, gate=gate, greens=greens, made_at=made_at,
        parts=_parts, share=_share, shown=_shown,
    )  # fmt: skip


def _parts(diff: Diff) -> list[dict[str, Any]]:
    """The four kinds of rows with their place on a bar of 1000; a kind that occurs is never invisible."""
    counts = [
        ("the same", "same", diff.common - diff.changed),
        ("changed", "changed", diff.changed),
        ("only in blue", "blue", diff.only_blue),
        ("only in green", "green", diff.only_green),
    ]
    total = sum(rows for _, _, rows in counts) or 1
    widths = [max(1000 * rows / total, 6) if rows else 0 for _, _, rows in counts]
    scale = 1000 / max(sum(widths), 1000)
    parts, x = [], 0.0
    for (label, colour, rows), width in zip(counts, widths, strict=True):
        parts.append({"label": label, "colour": colour, "rows": rows, "x": round(x, 2),
                      "width": round(width * scale, 2)})  # fmt: skip
        x += width * scale
    return parts


def _share(changed: int, common: int) -> float:
    """Percent of the common rows, at least 1 where there is any."""
    return 0 if not changed or not common else max(1.0, round(100 * changed / common, 1))


def _shown(value: Any) -> str:
    text = (
        value
        if isinstance(value, str)
        else "null"
        if value is None
        else json.dumps(value, ensure_ascii=False)
    )
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} characters)"
