"""Has a running lake server judge changed definitions on a sample of its logs, against the live versions."""

from __future__ import annotations

from typing import Any

from twinlake.base.errors import DefinitionError, TwinlakeError, UnreachableError
from twinlake.cli import release_steps as steps
from twinlake.cli.job_options import Asked
from twinlake.cli.jobs import lake_client
from twinlake.cli.judged import Judged, Wanted
from twinlake.config.settings import Settings


def judged(settings: Settings, wanted: Wanted, sampled: Asked, key: str | None) -> Judged:
    """What the working tree's definitions show otherwise than the live versions, table by table."""
    from twinlake.definitions.loader import load

    loaded = load(*settings.sources)
    known = {table.name: table for table in loaded.tables}
    wanted.refuse_wrong(known, loaded.wrong)
    wanted.refuse_unknown(known)
    release = lake_client(settings).status().get("release") or {"number": None, "tables": {}}
    live = release["tables"]
    tables = wanted.met(known)
    definitions = {name: one.to_json() for name, one in known.items()}
    compared, refused = list[dict[str, Any]](), dict[str, str]()
    for name in (one for one in tables if one in live):
        params = {"table": name, "definitions": definitions, **sampled}
        try:
            compared.append(steps.run(settings, "sample", params, f"{key}/{name}" if key else None))
        except UnreachableError:
            raise
        except TwinlakeError as error:
            if isinstance(error, DefinitionError) and (wrong := known.get(error.facts.get("table", ""))):
                # the lake server knows no file
                raise wrong.error(error.facts["why"], error.remedy) from error
            if len(tables) == 1:
                raise
            refused[name] = f"{error.what}: {error.why}" if error.why else error.what
    return Judged(
        against="an empty lake" if release["number"] is None else f"release {release['number']}",
        compared=wanted.shown(compared), refused=refused, new=[one for one in tables if one not in live],
    )  # fmt: skip
