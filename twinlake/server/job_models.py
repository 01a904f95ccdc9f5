"""What the lake server can be asked for: a model per kind of job, the one source of all that shows it.

The API validates by it, docs/api.md and the options of the command line are made from it, and so are the
forms of Airflow. What a field does is said here once.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from twinlake.base.errors import UsageError, visible
from twinlake.base.strict import Plain
from twinlake.base.times import parse_moment


def _time(text: str) -> str:
    try:
        parse_moment(text)
    except UsageError as error:
        raise ValueError(f"{error.what}: {error.why}; {error.remedy}") from error
    return text


def _person(text: str) -> str:
    if not text.strip() or visible(text) != text:
        why = "it is blank, or has control characters; give one that people can read"
        raise ValueError(f"{visible(text)!r} is nobody's name: {why}")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):  # it may hold a secret: it is not repeated
        raise ValueError("it is not an https:// address such as https://example.com/changes")
    return text


def _option(name: str) -> str:
    """A parameter in words for both: who sends it in a request, and who types it."""
    return f"{name} (--{name.replace('_', '-')})"


def _refuse_empty(start: str | None, end: str | None) -> None:
    if start is not None and end is not None and parse_moment(start) >= parse_moment(end):
        raise ValueError(f"the range {start} to {end} is empty; let the end be after the start")


Name = Annotated[str, Field(min_length=1, max_length=300)]
"""Of a table, a version, a topic, a plan: what it names is looked up by whoever acts on it."""
TopicName = Annotated[str, Field(min_length=1, max_length=249)]
"""A name that Kafka takes; more of it is looked at by whoever acts on it."""
Person = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_person)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
"""Somebody's words, which are kept for ever."""

Address = Annotated[str, Field(max_length=2_000), AfterValidator(_address)]
Rfc3339 = Annotated[Name, AfterValidator(_time)]
From = Annotated[Rfc3339 | None, Field(alias="from", description="first window start, RFC 3339")]
To = Annotated[Rfc3339 | None, Field(alias="to", description="window starts before this, RFC 3339")]
Due = Annotated[
    bool,
    Field(description="what the DAG batch does: the windows with new records, and once a day all of history"),
]
OfVersion = Annotated[Name | None, Field(description="this version; the live one unless given")]
Paused = Annotated[Name, Field(description="a topic, a table, or the table of a changelog")]
PausedKind = Annotated[
    Literal["topic", "table", "changelog"] | None,
    Field(description="what is meant, where there is more than one thing of that name"),
]
By = Annotated[Person, Field(description="who does it")]


class Params(Plain):
    """Base of all job parameters."""


class RebuildParams(Params):
    """Replace closed history of a table by what the log gives, beside the running stream."""

    table: Name = Field(description="the table to compute again from its log")
    start: From = None
    end: To = None
    due: Due = False
    repair: bool = Field(
        default=False, title="Repair differences", description="replace even where speed and batch differ"
    )
    reason: Reason | None = Field(
        default=None, title="Reason of the repair",
        description="why a difference is repaired; kept for ever",
    )  # fmt: skip
    version: OfVersion = None

    @model_validator(mode="after")
    def _of_a_repair(self) -> Self:
        _refuse_empty(self.start, self.end)
        if self.reason is not None and not self.repair:
            raise ValueError("reason is that of `repair`, which is not requested")
        return self


class VerifyParams(Params):
    """Compare what speed wrote with what batch computes, at one position, and store the certificate."""

    table: Name = Field(description="the table to compare with its log")
    start: From = None
    end: To = None
    due: Due = False
    repair: bool = Field(default=False, description="rebuild it where speed and batch differ")
    version: OfVersion = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _refuse_empty(self.start, self.end)
        return self


class MaintainParams(Params):
    """Compact logs, delete files and commits that nobody needs, of one table or of all."""

    table: Name | None = Field(default=None, description="of this table alone; of all unless given")


class BackupParams(Params):
    """Take a backup into the folder that `[backup]` of the settings names, and let the oldest go."""


class AcceptParams(Params):
    """Go on with a topic that was made again, or whose records Kafka has lost; what is lost is named."""

    topic: Name = Field(description="the topic that has stopped")


class ReplayParams(Params):
    """Validate quarantined records again by the active contract; tables take those that are valid now."""

    topic: Name = Field(description="the topic whose records were refused")
    reasons: tuple[Name, ...] = Field(
        default=(), max_length=100, strict=False,  # JSON has lists
        title="Reason", description="only this reason, like not_allowed or not_allowed:status",
    )  # fmt: skip


class ChangelogParams(Params):
    """Send the changes of a live table to a compacted topic from now on, or its rows as events to topics."""

    table: Name = Field(description="the live table")
    topic: TopicName | None = Field(
        default=None, description="send to this topic, which is made where it is missing"
    )
    topic_from: Name | None = Field(
        default=None, description="send each event to the topic that this column names"
    )
    topics: tuple[TopicName, ...] = Field(
        default=(), max_length=100, strict=False,
        description="with a topic from a column: the topics that it may name",
    )  # fmt: skip
    other_topic: TopicName | None = Field(
        default=None, description="gets what names none of the topics; without it that stops the changelog"
    )
    position_topic: TopicName | None = Field(
        default=None,
        description="gets the position; `<topic>.position` or `changelog.<table>.position` unless given",
    )
    key: tuple[Name, ...] = Field(
        default=(), max_length=100, strict=False, description="columns that make the key of an event"
    )
    partition_by: Literal["key", "source"] | None = Field(
        default=None,
        description="`key`, or `source`: the partition of its record; by the key if there is one",
    )
    format: Literal["avro", "json"] = Field(default="avro", description="of events, `avro` or `json`")
    headers: Literal["record-id", "none"] = Field(
        default="record-id", description="of events, `record-id` (topic, epoch, partition, offset) or `none`"
    )
    begin: Literal["now", "beginning"] = Field(
        default="now", alias="from",
        description="where events begin that were never sent, `now` or `beginning`",
    )  # fmt: skip
    resend: bool = Field(default=False, description="send all events again that the log has")
    stop: bool = Field(default=False, description="send no more; started again, it goes on")

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        asked = (self.topic is not None, self.topic_from is not None, self.resend, self.stop)
        if sum(asked) != 1:
            raise ValueError("give one of topic, topic_from, resend and stop")
        if (self.topic_from is not None) != bool(self.topics):
            raise ValueError(
                f"{_option('topic_from')} and {_option('topics')} go together: give both, a column and the "
                "topics that it may name"
            )
        if self.topic_from is None and self.other_topic is not None:
            raise ValueError(
                f"{_option('other_topic')} is for events whose topic a column names: give "
                f"{_option('topic_from')}, or leave out the former"
            )
        for name, given in (("topics", self.topics), ("key", self.key)):
            if twice := [one for one in given if given.count(one) > 1]:
                raise ValueError(f"{_option(name)} has {twice[0]} twice: give it once")
        if self.partition_by == "key" and not self.key:
            raise ValueError(
                f"{_option('partition_by')} is key, and the events have none: name its columns with "
                f"{_option('key')}, or leave it out"
            )
        if self.resend or self.stop:
            known = {"table", "resend", "stop"}
            others = [
                _option(one.alias or name)
                for name, one in type(self).model_fields.items()
                if name not in known and getattr(self, name) != one.default
            ]
            if others:
                raise ValueError(f"{', '.join(others)}: give that when it is started, and leave it out here")
        return self


class PublishParams(Params):
    """Keep a live table as a plain Delta table for other engines from now on, or no more.

    It is in `<lake>/published/<table>`: whoever can read that folder reads every row and column.
    """

    table: Name = Field(description="the live table")
    stop: bool = Field(
        default=False, description="publish no more; what is there stays, and a new start goes on from it"
    )


class WebhookParams(Params):
    """Post the changes of a live table to an address from now on, or no more."""

    table: Name = Field(description="the live table")
    url: Address | None = Field(
        default=None, description="post to this address; https://, or http:// to this machine"
    )
    begin: Literal["now", "beginning"] = Field(
        default="now", alias="from", description="where it begins for an address that has had nothing"
    )
    stop: bool = Field(default=False, description="post no more; a new start goes on from there")

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if (self.url is None) != self.stop:
            raise ValueError("give either url or stop")
        return self


class PauseParams(Params):
    """Have a topic, a table or a changelog stand still until `twinlake resume`, over every restart.

    Of a topic no record is taken off Kafka, a table keeps its position while its log goes on, a changelog
    sends nothing. Nothing is lost as long as Kafka keeps what is not read: `twinlake status` warns in time.
    """

    name: Paused
    kind: PausedKind = None
    reason: Reason | None = Field(default=None, description="why; `twinlake status` shows it")
    by: By


class ResumeParams(Params):
    """Have what was paused go on from where it stands; nothing is left out."""

    name: Paused
    kind: PausedKind = None
    by: By


class ReloadParams(Params):
    """Make topics, schemas and contracts active as the project's files have them now, all or none.

    New topics are made, and read. The next batch of an edited one follows its new files; nothing else stops.
    Definitions of tables are not read: they go live by a release.
    """

    check: bool = Field(default=False, description="only say what would become of them")


class ExpireParams(Params):
    """Delete records older than their topics' contracts keep them, and windows that tables show no more."""

    topic: Name | None = Field(default=None, description="of this topic alone; of all unless given")
    table: Name | None = Field(default=None, description="of this table alone; of all unless given")
    check: bool = Field(default=False, description="only say what would go; delete nothing")

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if self.topic is not None and self.table is not None:
            raise ValueError("both a topic and a table are named; name one, or none for all")
        return self
