"""The step between broker, registry and lake: every topic exists, every schema is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.parts.lock import is_locked, supervisor_access
from infra.parts.part import Context, Part
from infra.parts.rights import admit
from jobs.errors import ContractError, DifferenceError
from jobs.topics.change import REMEDY, breaking
from jobs.topics.contract import JSON
from jobs.topics.kafka import Kafka
from jobs.topics.schema import Schema, readable_fields
from jobs.topics.topic import Topic, load_topic, topic_names

if TYPE_CHECKING:
    from jobs.topics.registry import Registry


def parts() -> tuple[Part, ...]:
    return (
        Part(name="topics", service="topics", needs=("broker", "registry"), prepare=_prepare, probe=_probe),
    )


def _prepare(context: Context) -> None:
    # here, because every command of `twinlake` knows this list of parts, and the client takes half a second
    from jobs.topics.registry import Registry

    kafka = Kafka(supervisor_access(context))
    registry = Registry(context.services.registry())
    sources = context.settings.sources
    if is_locked(context.settings):
        admit(context, topic_names(*sources))
    for name in topic_names(*sources):
        topic = load_topic(name, *sources)
        register(registry, topic)
        if kafka.topic(topic.name) is None:  # where it is given, we may have no right to make one
            kafka.create(topic.name)


def register(registry: Registry, topic: Topic) -> None:
    """Registers the schemas that the registry has not got yet, oldest first; refuses an incompatible one.

    A topic in JSON has none: its contract is its schema.
    """
    if topic.contract.format == JSON:
        return
    subject = f"{topic.name}-value"
    by_id = registry.schemas(subject)
    known, before = list(by_id.values()), None
    for schema in topic.schemas:
        if dict(schema.avro) not in known:
            refuse_breaking(schema, known, before)
            try:
                registry.register(subject, dict(schema.avro))
            except DifferenceError as error:
                foreign = [number for number, avro in by_id.items() if _breaks(avro, schema)]
                raise _in_the_way(error, subject, foreign) if foreign else error from error
        before = schema


def refuse_breaking(schema: Schema, known: list[dict[str, Any]], before: Schema | None) -> None:
    """In the words of `twinlake check`, which cannot know what producers have registered; the registry has
    rules of its own, and says no more than that it refuses.

    What the topic's file before could not read either is no reason: such records wait in quarantine.
    """
    for avro in known:
        wrong = _breaks(avro, schema)
        if wrong and not (before and _breaks(avro, before)):
            raise ContractError(schema.file, *wrong, remedy=REMEDY)


def _breaks(avro: dict[str, Any], schema: Schema) -> tuple[str, str] | None:
    """Where and why the schema cannot read a registered one; types that only the registry can judge pass."""
    fields, others = readable_fields(avro, schema.file)
    return None if others else breaking(fields, schema)


def _in_the_way(error: DifferenceError, subject: str, foreign: list[int]) -> DifferenceError:
    ids = ", ".join(map(str, foreign))
    return DifferenceError(
        error.what,
        f"{error.why}; producers have registered schema {ids}, which no schema file of the topic can read",
        f"delete the versions of schema {ids} from subject {subject} in the registry (records of theirs stay "
        "in quarantine), then run `twinlake up` again",
    )


def _probe(context: Context) -> str:
    return ", ".join(topic_names(*context.settings.sources))
