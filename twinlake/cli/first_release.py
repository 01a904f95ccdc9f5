"""The first release of an empty lake: the tables as they are defined now, made live before any record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from twinlake.base.job import Asker
from twinlake.base.version import commit_of
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings
from twinlake.definitions.loader import load
from twinlake.server.client import LakeClient

APPROVED_BY = "twinlake up"


def ensure_release(settings: Settings, say: Callable[[str], None]) -> str | None:
    """Plans, builds and promotes where nothing is live yet; None when something is.

    The keys name the steps, so that a call killed in between goes on where it stopped.
    """
    client = LakeClient.of(
        settings.services(), Asker(by=APPROVED_BY, via="cli"), read_again=settings.services
    )
    status = client.status()
    if status["release"]:
        return None

    loaded = load(*settings.sources)
    for error in loaded.wrong:
        say(f"left out of the first release: {error.what}")
    definitions = {table.name: table.to_json() for table in loaded.tables}
    if not definitions:
        return None
    meaning = hashlib.sha256(json.dumps(definitions, sort_keys=True).encode()).hexdigest()[:12]
    first = f"{status['lake_id']}:{meaning}"

    def do(kind: str, params: dict[str, Any]) -> dict[str, Any]:
        say(f"first release: {kind}")
        job = client.submit(kind, params, key=f"first:{kind}:{params.get('plan', first)}")
        return client.follow(job.id).succeeded()

    plan = do("plan", {"definitions": definitions, "git_commit": commit_of(settings.project.root)})["id"]
    do("build", {"plan": plan})
    do("promote", {"plan": plan, "approved_by": APPROVED_BY})
    return f"1 is live: {', '.join(definitions)}"


if __name__ == "__main__":
    print(ensure_release(load_settings(), print) or "a release is live already")
