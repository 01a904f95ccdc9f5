"""Owns the published list of verdicts and of reasons; a reason is a code, or `code:field`.

Codes are stable: queries, dashboards and replays depend on them. They are added, never renamed.
"""

from __future__ import annotations

from collections.abc import Mapping

VALID = "valid"
INVALID = "invalid"
DUPLICATE = "duplicate"
TOO_LATE = "too_late"
IGNORED = "ignored"
"""No value, and the contract says that this means nothing: neither counted nor a mistake."""
EXPIRED = "expired"
"""Of rows, beside the verdicts: a valid record that came late and is still listed, though retention has taken
it out of what tables are computed from. It is counted under `valid` for ever."""
VERDICTS = (VALID, INVALID, DUPLICATE, TOO_LATE, IGNORED)
"""Every record of a log has exactly one of them."""
LATE = "late"
"""Counted beside the verdicts: valid records that came after the contract's `late_after`."""
REPLAYED = "replayed"
"""Counted beside the verdicts, under which a record counts by its latest: copies that replays have made."""

# Undecodable: the bytes are no event. Reported alone, for no rule can be asked about them.
NULL_VALUE = "null_value"
BAD_HEADER = "bad_header"
UNKNOWN_SCHEMA = "unknown_schema"
MALFORMED_BODY = "malformed_body"
INVALID_UTF8 = "invalid_utf8"
DECIMAL_OUT_OF_RANGE = "decimal_out_of_range"
TIME_OUT_OF_RANGE = "time_out_of_range"
WRONG_TYPE = "wrong_type"
UNREADABLE_BY_SCHEMA = "unreadable_by_schema"
BAD_KEY = "bad_key"

# A rule of the contract is broken. All broken rules are reported, in the contract's order.
MISSING = "missing"
EMPTY = "empty"
BELOW_MINIMUM = "below_minimum"
ABOVE_MAXIMUM = "above_maximum"
NOT_ALLOWED = "not_allowed"
TOO_LONG = "too_long"
AHEAD_OF_KAFKA = "ahead_of_kafka"
UNAVAILABLE_VALUE = "unavailable_value"

# The event is sound, but it is not counted.
DISCARDED = "too_late"
ALREADY_SEEN = "already_seen"

REASONS: dict[str, str] = {
    NULL_VALUE: "the record has no value",
    BAD_HEADER: "the value is shorter than 5 bytes or does not start with the Confluent magic byte 0",
    UNKNOWN_SCHEMA: "the schema id in the header is not a version of the topic's subject",
    MALFORMED_BODY: "the body ends too early, goes on after its end, or is not Avro or Protobuf of its "
    "schema or no JSON object; a decimal of no bytes is not a number, and an object with a name twice is "
    "none",
    INVALID_UTF8: "the string is not valid UTF-8",
    DECIMAL_OUT_OF_RANGE: "the decimal has more digits than its schema allows, however many",
    TIME_OUT_OF_RANGE: "the date or time is outside the years 1 to 9999",
    WRONG_TYPE: "the JSON value at this path has not the type that the contract says",
    UNREADABLE_BY_SCHEMA: "the topic's newest schema cannot read this field as the record's schema has it; "
    "validated again by itself once a schema that can is active",
    BAD_KEY: "the record's key is not what the contract's keyFormat says",
    MISSING: "a required field is null",
    EMPTY: "a field that must not be empty is the empty string",
    BELOW_MINIMUM: "the value is less than the contract's minimum",
    ABOVE_MAXIMUM: "the value is greater than the contract's maximum",
    NOT_ALLOWED: "the value is not one of those that the contract lists",
    TOO_LONG: "the text is longer than the contract allows",
    AHEAD_OF_KAFKA: "the event time is later than the Kafka timestamp by more than the contract tolerates",
    UNAVAILABLE_VALUE: "the database did not log a large value that the change left alone: set REPLICA "
    "IDENTITY FULL for the table, or let the connector look it up (ReselectColumnsPostProcessor)",
    DISCARDED: "the event time is older than the Kafka timestamp by more than `discardAfter`",
    ALREADY_SEEN: "the id (of change data: the same change) was on a valid record earlier in the log, within "
    "`uniqueWithin`",
}
UNDECODABLE = (
    NULL_VALUE, BAD_HEADER, UNKNOWN_SCHEMA, MALFORMED_BODY, INVALID_UTF8, DECIMAL_OUT_OF_RANGE,
    TIME_OUT_OF_RANGE, WRONG_TYPE, UNREADABLE_BY_SCHEMA,
)  # fmt: skip


def records_in(counts: Mapping[str, int]) -> int:
    """How many records these counts by verdict are about; late ones are valid ones counted again."""
    return sum(counts.get(verdict, 0) for verdict in VERDICTS)


def rows_in(counts: Mapping[str, int]) -> int:
    """How many rows a log with these counts has: its records, and the copies of those that were replayed."""
    return records_in(counts) + counts.get(REPLAYED, 0)


def reason(code: str, field: str = "") -> str:
    """The machine-readable text of one reason; an unpublished code is refused."""
    if code not in REASONS:
        raise ValueError(f"unpublished reason {code!r}")
    return f"{code}:{field}" if field else code


def meaning(text: str) -> str:
    """What such a text says, for a person; empty for one that is none."""
    return REASONS.get(text.split(":", 1)[0], "")
