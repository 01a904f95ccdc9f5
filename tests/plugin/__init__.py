"""A third party's package: installed into a folder as pip leaves it behind; its tables, what they show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.their_tables import Ages, LogSum, Statuses
from twinlake import Aggregate
from twinlake.kinds.kind import Kind

POINTS = {
    "twinlake.kinds": ("ages = their_tables:Ages", "statuses = their_tables:Statuses"),
    "twinlake.measures": ("log_sum = their_tables:LogSum",),
}
"""By group, its entry points."""
SOURCE = (Path(__file__).parent / "their_tables.py").read_text()
AGES = Ages(
    name="ages", inputs=("orders",), columns={"region": "region", "at": "ordered_at"}, key="region", time="at"
)
STATUSES = Statuses(name="statuses", inputs=("orders",), column="status")
LOGS = Aggregate(
    name="logs", inputs=("orders",), where="amount > 0", columns={"region": "region", "amount": "amount"},
    keys=("region",), measures={"logs": LogSum("amount")},
)  # fmt: skip


def installed(folder: Path, points: Mapping[str, tuple[str, ...]] = POINTS, module: str = SOURCE) -> Path:
    """The folder, with the package in it."""
    (folder / "their_tables.py").write_text(module)
    about = folder / "their_tables-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-tables\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "\n".join(named) + "\n" for group, named in points.items())
    )
    return folder


def expected(table: Kind, records: list[dict[str, Any]]) -> dict[str, Any]:
    """What each toy shows, by definition and without merging."""
    groups: dict[str, list[Any]] = defaultdict(list)
    if table.name == "ages":
        for one in records:
            groups[one["region"]].append(one["ordered_at"])
        return {key: (min(times), max(times)) for key, times in groups.items()}
    if table.name == "statuses":
        for one in records:
            groups[one["status"]].append(1)
        return {key: len(held) for key, held in groups.items()}
    for one in records:
        if one["amount"] > 0:
            groups[one["region"]].append(math.log(float(one["amount"])))
    return {key: pytest.approx(sum(logs), rel=1e-9) for key, logs in groups.items()}


def shown(rows: list[Any]) -> dict[str, Any]:
    plain = [
        tuple(value.astimezone(UTC) if hasattr(value, "astimezone") else value for value in row)
        for row in rows
    ]
    return {key: values[0] if len(values) == 1 else tuple(values) for key, *values in plain}


def promised(counted: str) -> dict[str, dict[str, str]]:
    """The columns of each toy; `counted` is that of Statuses."""
    return {
        "ages": {"region": "string", "oldest": "timestamp", "newest": "timestamp"},
        "logs": {"region": "string", "logs": "double"},
        "statuses": {counted: "string", "n": "bigint"},
    }
