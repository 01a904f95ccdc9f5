"""The services that a user has already: nothing is started, they are asked whether they answer."""

from __future__ import annotations

from pathlib import Path

from infra.parts.folders import Folders
from infra.parts.part import Context, Part
from jobs.files import replace_file
from jobs.topics.kafka import Kafka


def parts() -> tuple[Part, ...]:
    """One for each service that can be given, under the name of the one that it stands for."""
    return (
        Part(name="broker", service="broker", given=True, prepare=_remember, probe=_broker),
        Part(name="registry", service="registry", given=True, probe=_registry),
        Part(name="airflow", service="airflow", given=True, probe=_airflow),
    )


def cluster_file(folders: Folders) -> Path:
    """Holds the id of the cluster that was given when the parts were started last."""
    return folders.run / "cluster_id"


def _remember(context: Context) -> None:
    replace_file(cluster_file(context.folders), Kafka(context.services.kafka("ingest")).cluster_id())


def _broker(context: Context) -> str:
    Kafka(context.services.kafka("ingest")).cluster_id()
    return context.services.bootstrap_servers


def _registry(context: Context) -> str:
    from jobs.topics.registry import Registry  # here: half a second that no other command needs

    Registry(context.services.registry(), timeout_s=5).subjects()
    return context.services.registry_url


def _airflow(context: Context) -> str:
    from infra.parts.check_airflow import health

    health(context.services.airflow_url, context.settings.configuration.airflow.ca_file)
    return context.services.airflow_url
