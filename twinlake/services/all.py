"""The list of all parts, in an order in which each comes after what it needs."""

from __future__ import annotations

from collections.abc import Collection

from twinlake.services import airflow, alarms, broker, console, external, lake, registry, sql, topics
from twinlake.services.part import Part


def all_parts(given_services: Collection[str] = ()) -> tuple[Part, ...]:
    """Every part there is; a new service is one more line here. What is given is only asked."""
    embedded = (
        *broker.parts(),
        *registry.parts(),
        *topics.parts(),
        *lake.parts(),
        *sql.parts(),
        *airflow.parts(),
        *console.parts(),
        *alarms.parts(),
    )
    instead = {part.service: part for part in external.parts() if part.service in given_services}
    return tuple(dict.fromkeys(instead.get(part.service, part) for part in embedded))


def service_names(parts: tuple[Part, ...]) -> tuple[str, ...]:
    """The services of the parts, each once, in their order."""
    return tuple(dict.fromkeys(part.service for part in parts))
