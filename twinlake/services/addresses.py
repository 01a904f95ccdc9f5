"""What services.json says: where each part listens or is given, and the secrets that go with it."""

from __future__ import annotations

import secrets

from twinlake.config.settings import Services
from twinlake.services import airflow, broker, broker_security, console, external, metrics, registry, sql
from twinlake.services.part import Context
from twinlake.services.ports import HOST


def addresses(context: Context) -> Services:
    """Every address by the ports as they are; secrets that exist are kept, missing ones made."""
    ports, values = context.ports, context.settings.values
    return Services(
        bootstrap_servers=values.kafka.bootstrap_servers or f"{HOST}:{ports['broker']}",
        registry_url=values.registry.url or registry.url(ports["registry"]),
        registry_access=values.registry.shown(),
        api_url=f"http://{HOST}:{ports['lake']}",
        api_token=context.services.api_token or secrets.token_urlsafe(32),
        api_tokens_rotating=context.services.api_tokens_rotating,
        sql_user=sql.USER,
        sql_password=context.services.sql_password or secrets.token_urlsafe(24),
        sql_url=f"http://{HOST}:{ports['sql']}",
        jdbc_url=f"jdbc:hive2://{HOST}:{ports['jdbc']}/",
        flight_url=f"grpc://{HOST}:{ports['flight']}",
        console_url=console.url(context),
        console_user=console.USER,
        console_password=context.services.console_password or secrets.token_urlsafe(24),
        lake_metrics_url=metrics.url(context, metrics.LAKE),
        sql_metrics_url=metrics.url(context, metrics.SQL),
        console_metrics_url=metrics.url(context, metrics.CONSOLE),
        metrics_user=metrics.USER,
        metrics_password=context.services.metrics_password or secrets.token_urlsafe(24),
        airflow_url=values.airflow.url or f"http://{HOST}:{ports['airflow']}",
        airflow_user="" if values.airflow.is_external else airflow.USER,
        airflow_password="" if values.airflow.is_external else airflow.password(context),
        lake=str(context.settings.lake),
        kafka_access=broker_security.shown(context),
        cluster_id=_cluster_id(context),
        given=list(values.given),
        project=str(context.settings.project.root),
        settings=values.digest,
        query_seconds=float(values.limits.query_seconds),
        export_seconds=float(values.limits.export_seconds),
    )


def publish(context: Context) -> Services:
    """Writes services.json as it must be now, and the hashes of the passwords that servers ask for."""
    services = addresses(context)
    services.save(context.settings.services_file)
    sql.hand_over(services, context.folders)
    metrics.hand_over(services, context.folders)
    return services


def _cluster_id(context: Context) -> str:
    if not context.settings.values.kafka.is_external:
        return broker.cluster_id(context)
    file = external.cluster_file(context.folders)
    return file.read_text() if file.exists() else ""  # it was not asked yet
