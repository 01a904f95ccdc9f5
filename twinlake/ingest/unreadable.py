"""Records that the topic's newest schema cannot read: why, what to do, and whether the topic stops."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from twinlake.base.errors import StoppedTopicError
from twinlake.topics import verdict
from twinlake.topics.change import breaking, source
from twinlake.topics.contract import STOP
from twinlake.topics.formats import ENDINGS
from twinlake.topics.schema import Field, Schema, readable_fields
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A schema id whose records wait in quarantine, as raw bytes."""

    id: int
    avro: dict[str, Any]
    field: str
    """What cannot be read; "" where it is the schema as a whole."""
    why: str
    steps: str | None
    """What the next schema file has to say so that they can be read; None where none could."""

    @property
    def reason(self) -> str:
        """What its records are marked with."""
        return verdict.reason(verdict.UNREADABLE_BY_SCHEMA, self.field)

    @property
    def remedy(self) -> str:
        """What an operator does about the records in quarantine."""
        if self.steps:
            return f"{self.steps}: the records in quarantine are then validated again by themselves"
        what = repr(self.field) if self.field else "what cannot be read"
        return (
            f"no schema file can read both: have producers send {what} under another name; the records that "
            "they have sent stay in quarantine, with their bytes and schema id"
        )


def unreadable_schema(topic: Topic, schema_id: int, avro: dict[str, Any], why: str, field: str) -> Unreadable:
    """`field` is that of the newest schema that cannot be read, or the producer's that is in its way."""
    return Unreadable(id=schema_id, avro=avro, field=field, why=why, steps=_steps(topic, avro, field))


def schemas_met(looked: pa.Table) -> list[int]:
    """The schema ids of a look at some records, in the order in which the log meets them."""
    ids, partition, offset = (looked.column(name).to_numpy() for name in ("schema_id", "partition", "offset"))
    known, firsts = np.unique(ids[np.lexsort((offset, partition))], return_index=True)
    met: list[int] = known[np.argsort(firsts)].tolist()
    return met


def stops_at(
    topic: Topic, met: Collection[int], unreadable: Collection[Unreadable]
) -> StoppedTopicError | None:
    """The error for a topic that by contract stops at records of one of the schemas met."""
    found = next((one for one in unreadable if one.id in met), None)
    if found is None or topic.contract.unreadable_records != STOP:
        return None
    otherwise = (
        "no schema file can read both: give the changed field another name, or its records a new topic; to "
        f"leave these records out, say `unreadableRecords: quarantine` among the customProperties of "
        f"contracts/{topic.name}.yaml, run `twinlake check`, then `twinlake reload`"
    )
    return StoppedTopicError(
        what=f"topic {topic.name} has records of schema {found.id}, which {topic.newest.file} cannot read",
        why=f"{found.why}; by contract the topic stops at them (unreadableRecords)",
        remedy=f"{found.steps}: it goes on with these records" if found.steps else otherwise,
    )


def waiting(topic: Topic, records: Mapping[int, int], known: Collection[Unreadable]) -> list[dict[str, Any]]:
    """For `twinlake status`: by schema, how many records wait in quarantine, why, and what to do."""
    by_id = {one.id: one for one in known}
    found = []
    for schema_id, count in sorted(records.items()):
        one = by_id.get(schema_id)
        found.append({
            "schema": schema_id,
            "records": count,
            "reason": one.reason if one else verdict.UNREADABLE_BY_SCHEMA,
            "why": one.why if one else "what the registry says of it is not known yet",
            "remedy": one.remedy if one else f"see `twinlake quarantine {topic.name}`",
        })  # fmt: skip
    return found


def _steps(topic: Topic, avro: dict[str, Any], field: str) -> str | None:
    """How the next schema file can read the producer's records besides all that it reads now."""
    ours = topic.newest.field(field)
    theirs, others = readable_fields(avro, "")
    if ours is None or field in others:
        return None
    sent = source(ours, theirs)
    if sent is None:
        said, new = f"{field!r} has a default, or which leaves it out", replace(ours, has_default=True)
    else:
        said, new = (
            f"{field!r} is a {_name(sent, topic.newest)}",
            replace(ours, type=sent.type, avro=sent.avro),
        )
    fields = tuple(new if one is ours else one for one in topic.newest.fields)
    proposed = replace(topic.newest, fields=fields)
    if any(breaking(one.fields, proposed) for one in topic.schemas):
        return None
    left = breaking(theirs, proposed)
    return (
        f"add schemas/{topic.name}.v{topic.newest.number + 1}.{ENDINGS[topic.newest.format]} in which {said}"
        f"{f' (besides, {left[1]})' if left else ''}, and say the same in contracts/{topic.name}.yaml; "
        "run `twinlake check`, then `twinlake reload`"
    )


def _name(field: Field, schema: Schema) -> str:
    """An Avro type in the words of a schema file, a type of another language as the column that it is."""
    if schema.source is not None:
        return field.type
    avro = field.avro
    if isinstance(avro, list):
        avro = next((one for one in avro if one != "null"), "null")
    if isinstance(avro, dict):
        return str(avro.get("logicalType", avro.get("type")))
    return str(avro)
