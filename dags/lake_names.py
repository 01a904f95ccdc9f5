"""What the DAGs are called. Airflow knows a name once: those for an Airflow elsewhere may have a prefix."""

from __future__ import annotations

import json
from pathlib import Path

_FOLDER = Path(__file__).with_name(".twinlake.json")
"""`twinlake dags` writes it; this project's own folder has none."""
PREFIX: str = json.loads(_FOLDER.read_text())["prefix"] if _FOLDER.exists() else ""


def named(dag: str) -> str:
    """Its name in this Airflow."""
    return f"{PREFIX}{dag}"
