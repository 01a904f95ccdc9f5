"""The same parts in containers: run one, probe one, and what comes before all; for docker-compose.yml.

All containers share the host's network and every part binds loopback, so addresses are those of a local
set-up with fixed ports. `run` becomes the part's own command, `probe` is its health check, and `prepare`
writes services.json before any other starts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from twinlake.base.files import replace_file
from twinlake.config.project import Project, project_at
from twinlake.config.settings import Services, Settings
from twinlake.config.settings_file import overrides
from twinlake.services.addresses import addresses, publish
from twinlake.services.all import all_parts
from twinlake.services.folders import folders_of
from twinlake.services.part import Context, Part
from twinlake.services.ports import Ports
from twinlake.services.supervise.process import passed_on
from twinlake.setup.java import find_java

PORTS = {
    "broker": 19092, "broker_admin": 19094, "controller": 19093, "registry": 18081,
    "registry_management": 18082, "lake": 18090, "sql": 18091, "jdbc": 18092, "airflow": 18080,
    "flight": 18098, "sql_tls": 18096, "jdbc_tls": 18097, "flight_tls": 18099,
    "console": 18070, "lake_metrics": 18093, "sql_metrics": 18094, "console_metrics": 18095,
}  # fmt: skip


def context_of(home: Path, project: Project) -> Context:
    """What the parts may know; a container without services.json (the SQL server's) knows addresses only."""
    settings = Settings(home=home, in_project=project, overrides=overrides(os.environ))
    folders = folders_of(settings)
    folders.make()
    ports_file = folders.run / "ports.json"
    if not ports_file.exists():
        replace_file(ports_file, json.dumps(PORTS))
    known = Services.load(settings.services_file) if settings.services_file.exists() else Services()
    context = Context(
        settings=settings, folders=folders, ports=Ports(ports_file), java_home=find_java(os.environ),
        services=known, in_container=True,
    )  # fmt: skip
    return replace(context, services=known if known.api_token else addresses(context))


def main(arguments: Sequence[str]) -> None:
    """`run PART`, `probe PART` or `prepare`, in $TWINLAKE_HOME."""
    task, *names = arguments
    named = os.environ.get("TWINLAKE_PROJECT")
    project = project_at(Path(named) if named else None)
    context = context_of(Path(os.environ["TWINLAKE_HOME"]), project)
    if task == "prepare":
        if given := context.settings.values.given:
            file = context.settings.file
            sys.exit(f"docker-compose.yml runs everything itself, and {file} names a {given[0]}: "
                     "take it out there, or use `twinlake up` on the host")  # fmt: skip
        context.folders.containers.touch()
        publish(context)
    elif task == "probe":
        print(_part(names[0]).probe(context))
    elif task == "run":
        _become(_part(names[0]), context)
    else:
        sys.exit(f"{task} is none of prepare, probe, run")


def _part(name: str) -> Part:
    return next(part for part in all_parts() if part.name == name)


def _become(part: Part, context: Context) -> None:
    part.prepare(context)
    if part.command is None:
        return
    command = part.command(context)
    os.chdir(context.folders.run)
    os.execvpe(command.arguments[0], command.arguments, {**passed_on(os.environ), **command.environ})


if __name__ == "__main__":
    main(sys.argv[1:])
