"""The list of all parts, in an order in which each comes after what it needs."""

from __future__ import annotations

from infra.parts import airflow, broker, lake, registry, sql, topics
from infra.parts.part import Part


def all_parts() -> tuple[Part, ...]:
    """Every part there is; a new service is one more line here."""
    return (
        *broker.parts(),
        *registry.parts(),
        *topics.parts(),
        *lake.parts(),
        *sql.parts(),
        *airflow.parts(),
    )


def service_names(parts: tuple[Part, ...]) -> tuple[str, ...]:
    """The services of the parts, each once, in their order."""
    return tuple(dict.fromkeys(part.service for part in parts))
