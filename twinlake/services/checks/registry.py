"""What is asked of an external registry before anything uses it: subjects, their rules, their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.times import Clock
from twinlake.config.settings import Settings
from twinlake.services.checks.finding import Finding, refuse_clock, tried
from twinlake.topics.contract import JSON
from twinlake.topics.registered import is_same
from twinlake.topics.registering import refuse_breaking
from twinlake.topics.topic import Topic, load_topic, topic_names

if TYPE_CHECKING:
    from twinlake.topics.registry import Registry

SERVICE = "registry"


def findings(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Every check; the first one decides whether there are others."""
    from twinlake.topics.registry import Registry  # here: half a second that no other command needs

    configured = settings.values.registry

    @cache
    def registry() -> Registry:  # made within a look: settings that make no client are found wrong there
        return Registry(configured)

    reached = tried(SERVICE, configured.url, lambda: _reach(registry()))
    yield reached
    if reached.error:
        return
    yield tried(SERVICE, "its clock", lambda: refuse_clock("the registry", registry().clock(), clock))
    for name in topic_names(*settings.sources):
        yield tried(SERVICE, f"subject {name}-value", partial(_refuse_unfit, settings, registry(), name))


def _reach(registry: Registry) -> str:
    try:
        return f"{len(registry.subjects())} subjects"
    except UnreachableError as error:
        if "HTTP 404" not in error.why:
            raise
        raise UnreachableError(
            f"there is no schema registry at {registry.url}", error.why,
            "have url in [registry] end where Confluent's API begins: for Apicurio at /apis/ccompat/v7",
        ) from error  # fmt: skip


def _refuse_unfit(settings: Settings, registry: Registry, name: str) -> str:
    from twinlake.topics.registry import COMPATIBILITY, FITTING

    topic = load_topic(name, *settings.sources)
    if topic.contract.format == JSON:
        return "none is needed: its records are JSON"
    subject = f"{name}-value"
    rule = registry.rule(subject)
    if rule is not None and rule not in FITTING:
        raise UsageError(
            f"subject {subject} has the rule {rule}",
            "a producer could register a schema by which records of before cannot be read",
            f"curl -X PUT -H 'Content-Type: application/vnd.schemaregistry.v1+json' "
            f'--data \'{{"compatibility": "{COMPATIBILITY}"}}\' {registry.url}/config/{subject} '
            f"(or one of {', '.join(FITTING[1:])})",
        )
    missing = _missing(topic, list(registry.schemas(subject).values()))
    words = f"rule {rule}" if rule else "no rule of its own yet"
    return f"{words}, `twinlake up` registers {', '.join(missing)}" if missing else f"{words}, all schemas"


def _missing(topic: Topic, known: list[dict[str, object]]) -> list[str]:
    """The files that are not registered yet; ContractError for one that cannot be."""
    missing, before = [], None
    for schema in topic.schemas:
        if not any(is_same(schema.registered, one) for one in known):
            refuse_breaking(schema, known, before)
            missing.append(str(schema.file).rsplit("/", 1)[-1])
        before = schema
    return missing
