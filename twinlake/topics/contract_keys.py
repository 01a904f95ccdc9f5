"""Owns what Twinlake makes of the keys of a contract: of a topic's, of a table's, or of both.

The standard has many more, for people and other programs; of them only the form is validated.
"""

from __future__ import annotations

from dataclasses import dataclass

BOTH, TOPICS, TABLES = "both", "topics", "tables"


@dataclass(frozen=True, kw_only=True)
class Key:
    """What one key means."""

    of: str
    """Whose contracts it says something in."""
    meaning: str
    type: str = ""
    """Where it is narrower than the standard says."""
    needed: str = ""
    """Where the schema does not say it: whose contracts cannot do without."""


def _of(of: str, meaning: str, type_: str = "", needed: str = "") -> Key:
    return Key(of=of, meaning=meaning, type=type_, needed=needed)


COLUMN = "schema[].properties[]"
_OPTIONS = f"{COLUMN}.logicalTypeOptions"
KEYS: dict[str, Key] = {
    "apiVersion": _of(BOTH, "The version of the standard. Twinlake reads version 3."),
    "kind": _of(BOTH, "What the file is."),
    "id": _of(BOTH, "What other programs know the contract by. Twinlake does nothing with it."),
    "name": _of(BOTH, "The topic or table. The file is called like it: `contracts/<name>.yaml`."),
    "version": _of(
        BOTH,
        "Which edition of the contract this is: raise it with a change. The quarantine shows which one "
        "has validated a record; nothing depends on it.",
    ),
    "status": _of(BOTH, "For people. Twinlake does nothing with it."),
    "description": _of(BOTH, "What the contract is about."),
    "description.purpose": _of(
        BOTH, "What the topic or table is for. [Readers see it](bi-tools.md) in SQL and the console."
    ),
    "customProperties": _of(TOPICS, "[Properties of a topic](#properties-of-a-topic).", needed=TOPICS),
    "customProperties[].property": _of(TOPICS, "Which of them."),
    "customProperties[].value": _of(TOPICS, "Its value, always a text."),
    "schema": _of(BOTH, "The topic's records or the table's rows: exactly one object."),
    "schema[].name": _of(BOTH, "The topic or table once more."),
    "schema[].physicalType": _of(
        BOTH,
        "What it is. `topic` is refused of a contract without custom properties: it would pass for "
        "that of a table.",
    ),
    "schema[].logicalType": _of(BOTH, "That it has properties."),
    "schema[].dataGranularityDescription": _of(TABLES, "What one row is. Readers see it."),
    "schema[].properties": _of(
        BOTH,
        "The columns. Of a topic in Avro exactly the fields of its newest schema file, of one in JSON "
        "all that is read of a record, of a table those of which there is something to say.",
    ),
    f"{COLUMN}.name": _of(BOTH, "The field or column."),
    f"{COLUMN}.logicalType": _of(BOTH, "The standard's type; [which goes with which](#types)."),
    f"{COLUMN}.physicalType": _of(
        BOTH, "The type in Spark SQL. A table's column may leave out both, and then has the definition's."
    ),
    f"{COLUMN}.description": _of(BOTH, "What the column means. Readers see it."),
    f"{COLUMN}.classification": _of(
        BOTH,
        "Who sees the values: [rights](rights.md) mask columns by it. A table's columns without one "
        "have those of the topic's fields that they are made of.",
    ),
    f"{COLUMN}.required": _of(
        BOTH,
        "It is never NULL. A topic's record without it is `missing:<field>`, a table's release is "
        "refused by its gate.",
    ),
    f"{COLUMN}.unique": _of(
        TOPICS,
        "The field tells two events apart: a record whose value came before, within `uniqueWithin`, "
        "is a `duplicate`. One field. Of two in different partitions the one that Twinlake's log has first "
        "is valid, whatever their times: where that matters, send equal values with one key.",
    ),
    f"{COLUMN}.primaryKey": _of(
        BOTH,
        "Of a table: the column is one of those that identify a row, which the gate checks; without "
        "any they are the definition's. Of a topic: the field is in the record's key (`keyFormat`).",
    ),
    f"{COLUMN}.enum": _of(
        BOTH, "The values that a string may have; any other is `not_allowed:<field>`, or refused by the gate."
    ),
    f"{COLUMN}.enum[].value": _of(BOTH, "One of them.", "text"),
    _OPTIONS: _of(BOTH, "[Rules for its values](schemas.md#rules-of-a-field), as here; no others."),
    f"{_OPTIONS}.minLength": _of(BOTH, "Of a string, 1: it is not empty (`empty:<field>`)."),
    f"{_OPTIONS}.maxLength": _of(BOTH, "Of a string: at most so many characters (`too_long:<field>`)."),
    f"{_OPTIONS}.minimum": _of(BOTH, "Of a number: so much or more (`below_minimum:<field>`).", "number"),
    f"{_OPTIONS}.maximum": _of(BOTH, "Of a number: so much or less (`above_maximum:<field>`).", "number"),
    f"{COLUMN}.properties": _of(BOTH, "The fields of a struct: each with a name and both types."),
    f"{COLUMN}.items": _of(BOTH, "What an array holds: both types, and what is inside of that."),
    f"{COLUMN}.map": _of(BOTH, "What a map holds."),
    f"{COLUMN}.map.key": _of(BOTH, "Its keys, which are strings."),
    f"{COLUMN}.map.value": _of(BOTH, "Its values: both types, and what is inside of that."),
    "slaProperties": _of(BOTH, "[Promises of time](#promises-of-time)."),
    "slaProperties[].property": _of(BOTH, "Which promise. Twinlake does nothing with others."),
    "slaProperties[].value": _of(BOTH, "How long: above 0. An empty one promises nothing.", "number"),
    "slaProperties[].unit": _of(BOTH, "Seconds, minutes, hours, days or years, short or long (`s`, `days`)."),
    "team": _of(BOTH, "Who owns the topic or table."),
    "team.name": _of(BOTH, "What they are called."),
    "team.members": _of(BOTH, "Who is in the team."),
    "team.members[].username": _of(BOTH, "A mail address here gets the [alarms](alarms.md)."),
    "team.members[].dateOut": _of(BOTH, "Who has left gets none."),
    "team[].username": _of(BOTH, "The same, in a team that is a list of members: the older form."),
    "team[].dateOut": _of(BOTH, "The same."),
    "support": _of(BOTH, "Where help is found."),
    "support[].url": _of(BOTH, "`mailto:` and an address, which gets the [alarms](alarms.md)."),
}
"""By path, in which `[]` is any item of a list."""

PROMISES: dict[str, Key] = {
    "latency": _of(TABLES, "How old its oldest missing record may be, before there is an alarm."),
    "frequency": _of(TOPICS, "How long no record may come, before there is an alarm."),
    "retention": _of(
        TOPICS, "How long the lake [keeps records](retention.md#of-a-topic); without it for ever. Not "
        "shorter than `uniqueWithin`. A table says it in its [definition](definitions.md#aggregate).",
    ),
}  # fmt: skip
"""By `property` of `slaProperties`."""

UNSAID = {
    "price": "What it costs.",
    "context.verifiedStatements[].tags": "Tags of the entry.",
    "context.constraints[].tags": "Tags of the constraint.",
}
"""By path what a key is of which the standard's schema says nothing."""
