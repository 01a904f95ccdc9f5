"""Registering: a topic's schemas in the registry, oldest first; an incompatible one is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import ContractError, DifferenceError
from twinlake.topics.change import REMEDY, breaking
from twinlake.topics.contract import JSON
from twinlake.topics.formats import TYPES
from twinlake.topics.registered import inner, is_same, schema_type
from twinlake.topics.schema import Schema, readable_fields
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from twinlake.topics.registry import Registry


def register(registry: Registry, topic: Topic) -> None:
    """Registers the schemas that the registry has not got yet; refuses an incompatible one.

    A topic in JSON has none: its contract is its schema.
    """
    subject = f"{topic.name}-value"
    for schema, by_id in _new(registry, topic):
        try:
            registry.register(subject, schema.registered)
        except DifferenceError as error:
            foreign = [number for number, avro in by_id.items() if _breaks(avro, schema)]
            raise _in_the_way(error, subject, foreign) if foreign else error from error


def refuse_unregistrable(registry: Registry, topic: Topic) -> None:
    """ContractError for a schema that `register` would refuse by itself; nothing is registered. Rules of the
    registry's own are not asked."""
    for _ in _new(registry, topic):
        pass


def _new(registry: Registry, topic: Topic) -> Iterator[tuple[Schema, dict[int, dict[str, Any]]]]:
    """The schemas that the registry has not got, and by id those that it had."""
    if topic.contract.format == JSON:
        return
    by_id = registry.schemas(f"{topic.name}-value")
    known, before = list(by_id.values()), None
    for schema in topic.schemas:
        if not any(is_same(schema.registered, one) for one in known):
            refuse_breaking(schema, known, before)
            yield schema, by_id
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
    if TYPES.get(schema_type(avro)) != schema.format:
        return None
    try:
        found = inner(avro, schema.file, schema.message)
    except ContractError:
        return None
    fields, others = readable_fields(found.avro, schema.file)
    return None if others or found.others else breaking(fields, schema)


def _in_the_way(error: DifferenceError, subject: str, foreign: list[int]) -> DifferenceError:
    ids = ", ".join(map(str, foreign))
    return DifferenceError(
        error.what,
        f"{error.why}; producers have registered schema {ids}, which no schema file of the topic can read",
        f"delete the versions of schema {ids} from subject {subject} in the registry (records of theirs stay "
        "in quarantine), then run `twinlake up` or `twinlake reload` again",
    )
