"""Owns where things are: the project, the data directory, and services.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.files import SECRET, replace_file
from twinlake.base.location import Location, located
from twinlake.config import settings_file
from twinlake.config.library import jars_folder
from twinlake.config.login import Login, RegistryLogin, Role
from twinlake.config.project import Project

if TYPE_CHECKING:
    from twinlake.config.values import Values

RECORDS = "parts"
_FOREIGN = re.compile(r"[^!-~]|[%{}\[\]*?]")
"""Java's options are split on spaces, and its files of properties are no UTF-8."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Every address in use, as `services.json` lists them."""

    bootstrap_servers: str = ""
    registry_url: str = ""
    api_url: str = ""
    api_token: str = ""
    api_tokens_rotating: list[str] = field(default_factory=list, repr=False)
    """What the lake server accepts beside `api_token` while that is rotated."""
    jdbc_url: str = ""
    flight_url: str = ""
    """Arrow Flight SQL, of the SQL server as well."""
    airflow_url: str = ""
    airflow_user: str = ""
    airflow_password: str = ""
    lake: str = ""
    sql_url: str = ""
    """HTTP endpoint of the SQL server: which release it serves, and `twinlake query`."""
    sql_user: str = ""
    sql_password: str = ""
    """With `sql_user`, what readers show at JDBC and at `sql_url`."""
    sql_ca_file: str = ""
    """PEM, who has signed the certificate of a `sql_url` on another machine; else a usual authority has."""
    console_url: str = ""
    console_user: str = ""
    console_password: str = ""
    """Of the user that the first `twinlake up` makes; `access/users` has all of them, and no password."""
    lake_metrics_url: str = ""
    """What Prometheus scrapes of the lake server; empty where `[metrics]` switches it off."""
    sql_metrics_url: str = ""
    console_metrics_url: str = ""
    metrics_user: str = ""
    metrics_password: str = ""
    """With `metrics_user`, what Prometheus shows at each; it opens nothing else."""
    cluster_id: str = ""
    """Kafka's cluster id: another broker on the same port is not ours."""
    kafka_access: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """By role what it shows of itself to Kafka, as `Login.of` reads it; nothing for an open broker."""
    registry_access: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What a client shows the registry, as `RegistryLogin.of` reads it; nothing for an open one."""
    given: list[str] = field(default_factory=list)
    """The services that are used and not started, as twinlake.toml said when the others were."""
    project: str = ""
    """The folder of the project that was started."""
    settings: str = ""
    """A digest of the settings that were active then."""
    query_seconds: float = 300.0
    """So long the SQL server gives a statement at `sql_url`."""
    export_seconds: float = 3600.0
    """The same for one with a large result."""

    @property
    def reader(self) -> tuple[str, str]:
        """User and password of the endpoints that only read."""
        return self.sql_user, self.sql_password

    def kafka(self, role: Role) -> Login:
        """How a client in this role gets into Kafka."""
        return Login.of(self.bootstrap_servers, self.kafka_access.get(role, {}))

    def registry(self) -> RegistryLogin:
        """How a client gets into the schema registry."""
        return RegistryLogin.of(self.registry_url, self.registry_access)

    def save(self, path: Path) -> None:
        """Write the file as a whole, readable by its owner only."""
        found = asdict(self)
        if not self.sql_ca_file:  # of a client on another machine
            del found["sql_ca_file"]
        replace_file(path, json.dumps(found, indent=2) + "\n", SECRET)

    @classmethod
    def load(cls, path: Path) -> Services:
        """Read the file; a missing one means that nothing has been started."""
        try:
            found = _addresses(path)
        except FileNotFoundError as error:
            raise UnreachableError(
                "Twinlake is not running", f"{path} does not exist", "start it with `twinlake up`"
            ) from error
        except ValueError as error:
            raise UnreachableError(
                f"{path} cannot be read", str(error), "run `twinlake down`, then `twinlake up`"
            ) from error
        except OSError as error:
            raise UnreachableError(
                f"{path} cannot be read", error.strerror or str(error),
                "use the account that has run `twinlake up`, or name another folder with --home",
            ) from error  # fmt: skip
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in found.items() if name in known})

    @classmethod
    def drop_torn(cls, path: Path) -> None:
        """Deletes a file that `load` would refuse for what is in it."""
        with suppress(FileNotFoundError):
            try:
                _addresses(path)
            except ValueError:
                path.unlink()


def _project_of(services_file: Path) -> Project | None:
    """The project that was started with these addresses, where it still exists."""
    try:
        return Project.load(Path(_addresses(services_file)["project"]))
    except (OSError, ValueError, KeyError, TypeError, UsageError):
        return None


def _addresses(path: Path) -> dict[str, Any]:
    """What the file holds; ValueError where that is nothing that was saved."""
    found = json.loads(path.read_text())
    if not isinstance(found, dict):
        raise ValueError("it holds no addresses")
    return found


def refuse_home(home: Path, project: Project | None = None) -> None:
    """UsageError for a folder that cannot be the data directory, or not that of this project."""
    why = ""
    if project is not None and (held := project.held_by(home)):
        why = f"it holds {held} of the project"
    elif foreign := set(_FOREIGN.findall(str(home))):
        named = " and ".join(map(repr, sorted(foreign)))
        why = f"{named} in its path means something else to Java, Spark or deltalake"
    if why:
        remedy = "set TWINLAKE_HOME (or --home) to another folder"
        raise UsageError(f"the data directory cannot be {home}", why, remedy)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Folders, and what twinlake.toml says; built once by `__main__` (or a DAG file) and handed down."""

    home: Path
    """The data directory ($TWINLAKE_HOME)."""
    in_project: Project | None = None
    """The project that is worked on; None where only addresses are needed."""
    jars: Path = field(default_factory=lambda: jars_folder({}))
    """What Java needs, fetched once: see `twinlake/setup/jars.py`."""
    overrides: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What the environment says of `twinlake.toml`'s keys, secrets among it."""
    known_values: Values | None = field(default=None, repr=False, compare=False)
    """All that a process needs of it which may not read the file."""
    active_file: Path | None = None
    """The copy of `twinlake.toml` that what runs was started with; the file may have been changed since."""

    @classmethod
    def of(cls, environ: Mapping[str, str], start: Path | None = None) -> Settings:
        """What is in use: the project, and its data directory unless $TWINLAKE_HOME names another one.

        The project is $TWINLAKE_PROJECT, else the nearest one upward from `start`, else the one that the data
        directory was started with. UsageError where neither project nor data directory is known.
        """
        named = environ.get("TWINLAKE_PROJECT")
        project = Project.load(Path(named)) if named else Project.find(start or Path.cwd())
        at = environ.get("TWINLAKE_HOME") or (project.data if project else None)
        if at is None:
            raise UsageError(
                "there is no project here", f"no folder from {start or Path.cwd()} upward has a "
                "twinlake.toml with a section [project]",
                "go to a project's folder, name it with --project, or make one: `twinlake new project DIR`",
            )  # fmt: skip
        home = Path(at).expanduser().absolute()
        refuse_home(home, project)
        return cls(
            home=home, in_project=project or _project_of(home / "services.json"), jars=jars_folder(environ),
            overrides=settings_file.overrides(environ),
        )  # fmt: skip

    @property
    def project(self) -> Project:
        """The project that is worked on; UsageError where there is none."""
        if self.in_project is None:
            raise UsageError(
                "there is no project here", f"{self.home} does not say to which project it belongs",
                "go to the folder of the project, name it with --project, or make one: "
                "`twinlake new project DIR`",
            )  # fmt: skip
        return self.in_project

    @property
    def file(self) -> Path:
        return self.active_file or self.home / "twinlake.toml"

    @cached_property
    def values(self) -> Values:
        """What `twinlake.toml` and the environment say, read once; UsageError names what is wrong there."""
        return self.known_values or settings_file.load(self.file, self.overrides, self.home)

    def refuse_incomplete(self) -> None:
        """UsageError where something is lacking that services cannot be started without."""
        settings_file.refuse_incomplete(self.file, self.values)

    @property
    def lake(self) -> Location:
        """Where logs and tables are: what `[lake] uri` names, or a folder in `home`."""
        uri = self.values.lake.uri
        return located(uri) if uri else self.home / "lake"

    @property
    def checkpoints(self) -> Path:
        """The streams' own; they may be lost, so those of a lake elsewhere are on this machine, too."""
        return self._beside / "checkpoints"

    @property
    def kept_ids(self) -> Path:
        """What ingest has kept of its index of ids; it may be lost, too, and takes longer to start then."""
        return self._beside / "ids"

    @property
    def _beside(self) -> Path:
        return self.lake if isinstance(self.lake, Path) else self.home

    @property
    def records_dir(self) -> Path:
        """What the supervisor knows of each process: one file a process, `services/supervise/record.py`."""
        return self.run_dir / RECORDS

    @property
    def services_file(self) -> Path:
        return self.home / "services.json"

    @property
    def run_dir(self) -> Path:
        """Pids, logs and configuration of the running parts."""
        return self.home / "run"

    @property
    def classes(self) -> Path:
        """The project's own Java classes; `twinlake/setup/java_classes.py` makes it."""
        return self.jars / "classes" / "twinlake.jar"

    @property
    def class_archive(self) -> Path:
        """The classes of Spark's drivers as Java maps them; `twinlake/setup/class_archive.py` makes it."""
        return self.jars / "classes.jsa"

    @property
    def gallery_file(self) -> Path:
        return self.home / "gallery.json"

    @property
    def examples(self) -> tuple[str, ...]:
        """The examples of the gallery that this installation shows beside the project's own tables."""
        try:
            found = json.loads(self.gallery_file.read_text())
        except FileNotFoundError:
            return ()
        except ValueError:
            found = None
        known = self.project.example_names()
        if not isinstance(found, list) or not all(isinstance(name, str) and name in known for name in found):
            raise UsageError(
                f"{self.gallery_file} is not a list of examples", "it was changed, or an example is gone",
                "remove it, then add the examples again with `twinlake gallery add`",
            )  # fmt: skip
        return tuple(found)

    @property
    def sources(self) -> tuple[Project, ...]:
        """The project, and those of the examples that it shows."""
        return self.project.with_examples(self.examples)

    def services(self) -> Services:
        """The addresses in use now, or UnreachableError when nothing was started."""
        return Services.load(self.services_file)
