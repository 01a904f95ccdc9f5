"""What forms suggest: names of tables and topics, in an Airflow variable that tasks keep up to date.

To parse the DAGs asks the lake server for nothing. A name that is too new to be suggested is accepted too.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowRuntimeError

VARIABLE = "twinlake_names"
TABLES, TOPICS = "tables", "topics"

log = logging.getLogger("airflow.task.twinlake")


def suggestions(of: str) -> list[str]:
    """The names that were seen last; none before the first task has asked the lake server."""
    found = _known().get(of, [])
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def remember(status: Mapping[str, Any]) -> None:
    """What the lake server has said of itself, for the forms."""
    names = {
        TABLES: sorted(table["name"] for table in status["tables"] if table["windows"]),
        TOPICS: sorted(topic["name"] for topic in status["topics"]),
    }
    try:
        if _known() != names:
            Variable.set(VARIABLE, names, "what Twinlake's forms suggest", serialize_json=True)
    except AirflowRuntimeError as error:  # nobody may write variables here: the work itself needs none
        log.warning("the names of tables and topics are not suggested by forms: %s", error)


def _known() -> dict[str, Any]:
    known = Variable.get(VARIABLE, default={}, deserialize_json=True)
    return known if isinstance(known, dict) else {}
