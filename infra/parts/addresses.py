"""What services.json says: where each part listens, and the secrets that go with it."""

from __future__ import annotations

import secrets

from infra.parts import airflow, broker, lock, registry, sql
from infra.parts.part import Context
from infra.parts.ports import HOST
from jobs.settings import Services


def addresses(context: Context) -> Services:
    """Every address by the ports as they are; secrets that exist are kept, missing ones made."""
    ports = context.ports
    return Services(
        bootstrap_servers=f"{HOST}:{ports['broker']}",
        registry_url=registry.url(ports["registry"]),
        api_url=f"http://{HOST}:{ports['lake']}",
        api_token=context.services.api_token or secrets.token_urlsafe(32),
        sql_user=sql.USER,
        sql_password=context.services.sql_password or secrets.token_urlsafe(24),
        sql_url=f"http://{HOST}:{ports['sql']}",
        jdbc_url=f"jdbc:hive2://{HOST}:{ports['jdbc']}/",
        airflow_url=f"http://{HOST}:{ports['airflow']}",
        airflow_user=airflow.USER,
        airflow_password=airflow.password(context),
        lake=str(context.settings.lake),
        cluster_id=broker.cluster_id(context),
        kafka_access=lock.shown(context),
    )


def publish(context: Context) -> Services:
    """Writes services.json as it must be now, and for the SQL server the hash of its readers' password."""
    services = addresses(context)
    services.save(context.settings.services_file)
    sql.hand_over(services, context.folders)
    return services
