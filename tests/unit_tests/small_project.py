"""A small project in a folder: topics in JSON, tables, and a test file for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twinlake.config.project import Project

VISITS = """
apiVersion: v3.2.0
kind: DataContract
id: visits
name: visits
version: 1.0.0
status: active
description: {purpose: Visits of pages.}
customProperties:
  - {property: format, value: json}
  - {property: eventTime, value: at}
  - {property: lateAfter, value: 10 minutes}
  - {property: discardAfter, value: 7 days}
  - {property: futureTolerance, value: 5 minutes}
  - {property: uniqueWithin, value: 1 hour}
schema:
  - name: visits
    physicalType: topic
    logicalType: object
    properties:
      - {name: id, logicalType: string, physicalType: string, required: true, unique: true}
      - {name: page, logicalType: string, physicalType: string, required: true}
      - {name: kind, logicalType: string, physicalType: string, required: true,
         enum: [{value: human}, {value: robot}]}
      - {name: seconds, logicalType: number, physicalType: double}
      - {name: cents, logicalType: number, physicalType: "decimal(9,2)", required: true,
         logicalTypeOptions: {minimum: 5, maximum: 7}}
      - {name: at, logicalType: timestamp, physicalType: timestamp, required: true}
"""
PAGES = """
from twinlake import Aggregate, Avg, Count, Sum, Tumbling

TABLE = Aggregate(
    name="pages",
    inputs=("visits",),
    columns={"page": "page", "seconds": "seconds", "cents": "cents", "at": "at"},
    keys=("page",),
    window=Tumbling(on="at", size="1 minute"),
    measures={"visits": Count(), "seconds": Avg("seconds"), "cents": Sum("cents")},
)
"""
CASES = """
cases:
  two visits are counted:
    records:
      visits:
        - {page: home, at: 2026-01-31T12:00:00Z}
        - {page: home, at: 2026-01-31T12:00:59Z}
    rows:
      - {page: home, window_start: 2026-01-31T12:00:00Z, visits: 2}
"""


def project_of(folder: Path, files: Mapping[str, str]) -> Project:
    """A project with the topic, the table, and these files besides, by their places below the folder."""
    texts = {
        "twinlake.toml": "[project]\n",
        "contracts/visits.yaml": VISITS,
        "jobs/tables/pages.py": PAGES,
        **files,
    }
    for place, text in texts.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Project.load(folder)
