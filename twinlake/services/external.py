"""The services that a user has already: nothing is started, they are asked whether they answer."""

from __future__ import annotations

from pathlib import Path

from twinlake.base.files import replace_file
from twinlake.services.folders import Folders
from twinlake.services.part import Context, Part
from twinlake.topics.kafka import Kafka


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
    from twinlake.topics.registry import Registry  # here: half a second that no other command needs

    Registry(context.services.registry(), timeout_s=5).subjects()
    return context.services.registry_url


def _airflow(context: Context) -> str:
    from twinlake.services.checks.airflow import health

    health(context.services.airflow_url, context.settings.values.airflow.ca_file)
    return context.services.airflow_url
