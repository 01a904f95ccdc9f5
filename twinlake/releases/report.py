"""Report: a plan, its differences and its gate as one plain HTML page that loads nothing and runs nothing.

Values come from records that anybody may have produced: everything is escaped, long texts are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from twinlake.base.location import Location
from twinlake.base.times import format_moment
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.build import plan_versions
from twinlake.releases.comparison import Comparison
from twinlake.releases.drawn import drawn
from twinlake.releases.gate_checks import Gate
from twinlake.releases.shown import as_shown, shown

_pages = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_pages.filters["moment"] = lambda seconds: format_moment(datetime.fromtimestamp(seconds, UTC))


def write_report(lake: OpenLake, plan: Plan) -> Location:
    """The page beside the plan, from whatever has been stored of it so far; replaced as a whole."""
    found = (lake.plans.diff(plan.id, change.table, Comparison) for change in plan.switched)
    compared = [as_shown(one) for one in found if one is not None]
    gate = lake.plans.gate(plan.id, Gate)
    greens, switched = plan_versions(lake, plan), {change.table for change in plan.switched}
    page = render(
        plan,
        compared,
        gate,
        {table: green.name for table, green in greens.items() if table in switched},
        format_moment(lake.clock()),
    )
    return lake.plans.save_report(plan.id, page, compared)


def render(
    plan: Plan, diffs: Sequence[Mapping[str, Any]], gate: Gate | None, greens: Mapping[str, str], made_at: str
) -> str:
    """The page as text; `diffs` are comparisons as they are shown (`releases/shown.py`)."""
    return _pages.get_template("report.html").render(
        plan=plan, diffs=diffs, gate=gate, greens=greens, made_at=made_at,
        parts=_parts, share=_share, shown=shown, drawn=drawn,
    )  # fmt: skip


def _parts(diff: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The four kinds of rows with their place on a bar of 1000; a kind that occurs is never invisible."""
    counts = [
        ("the same", "same", diff["same"]),
        ("changed", "changed", diff["changed"]),
        ("only in blue", "blue", diff["only_blue"]),
        ("only in green", "green", diff["only_green"]),
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
