"""The fingerprints of versions of before, by today's formula: what means the same is called the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import structlog

from twinlake.base.location import Location
from twinlake.definitions.fingerprint import FORMULA, fingerprint, first_fingerprint
from twinlake.kinds.all import from_json
from twinlake.lake.catalog.made_with import upstream
from twinlake.lake.catalog.version import Version, stored_versions
from twinlake.lake.log.log import Log
from twinlake.topics.earlier import as_of_schema

journal = structlog.get_logger(__name__)


def store_fingerprints(lake: Location, logs: Mapping[str, Log]) -> None:
    """Gives each version, retired ones too, the fingerprint by today's formula; its name stays.

    Only one whose fingerprint by the former formula is still found out is known to mean what its definition
    means now. Any other has been outdated by its contract or the engine; it keeps its fingerprint, which is
    that of no definition. One whose topics are not open waits for a start at which they are.
    """
    for version in list(stored_versions(lake)):
        if version.formula < FORMULA and set(version.topics) <= logs.keys():
            found = _found_again(lake, version, logs)
            named = replace(version, formula=FORMULA, first_name=version.name)
            replace(named, fingerprint=found or version.fingerprint).save(lake)


def _found_again(lake: Location, version: Version, logs: Mapping[str, Log]) -> str | None:
    spark = next(iter(logs.values())).spark
    try:
        known = dict(upstream(lake, version))
        definition = from_json(version.definition).bound(known)
        topics = {name: as_of_schema(logs[name].topic, version.schemas.get(name)) for name in version.topics}
        if first_fingerprint(definition, topics, spark, known) == version.fingerprint:
            return fingerprint(definition, topics, spark, known)
        why = "its contract, its schema or the engine is another one now"
    except Exception as error:  # what it reads is damaged, or no longer understood
        why = str(error)
    journal.warning("the version has no fingerprint by today's formula", version=str(version), why=why)
    return None
