"""Owns every metric once: name, type, labels, unit, meaning, and the process that has it.

Names follow Prometheus' conventions: base units, `_total` for what is counted up, `_timestamp_seconds` for a
point in time, of which an age is `time() - it`. A label holds a name that the lake gives (a topic, a table, a
version) or one of a fixed list, never a value of a record, a statement or a path. What is not known, as a lag
while the broker is silent, has no sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Type = Literal["gauge", "counter", "histogram"]
Process = Literal["lake", "sql", "console"]
LAKE: Process = "lake"
SQL: Process = "sql"
CONSOLE: Process = "console"
BOTH: tuple[Process, ...] = (LAKE, SQL)
EVERY: tuple[Process, ...] = (LAKE, SQL, CONSOLE)
GAUGE: Type = "gauge"
COUNTER: Type = "counter"
HISTOGRAM: Type = "histogram"

SECONDS, BYTES, RECORDS, YES = "seconds", "bytes", "records", "1 or 0"
SHORT = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds of what takes milliseconds unless a disk is slow."""
LONG = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds of what takes longer the more there is of it."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric. A counter begins with 0 at each start of its process."""

    name: str
    type: Type = GAUGE
    unit: str
    meaning: str
    """One plain sentence."""
    labels: tuple[str, ...] = ()
    of: tuple[Process, ...] = (LAKE,)
    buckets: tuple[float, ...] = ()
    """Upper bounds, of a histogram."""


# -- every process

BUILD = Metric(
    name="twinlake_build_info", unit="1", of=EVERY, labels=("process", "version"),
    meaning="Always 1; its labels say which process this is, and the version of Twinlake.",
)  # fmt: skip
READY = Metric(
    name="twinlake_ready", unit=YES, of=EVERY,
    meaning="Whether the process does its work: not while it starts, and not when it is about to end.",
)  # fmt: skip
STARTED = Metric(
    name="twinlake_start_timestamp_seconds", unit=SECONDS, of=EVERY,
    meaning="When the process was started, in seconds since 1970.",
)  # fmt: skip
PYTHON_MEMORY = Metric(
    name="twinlake_python_resident_memory_bytes", unit=BYTES, of=EVERY,
    meaning="Memory that the process's Python holds, as the system counts it.",
)  # fmt: skip
JVM_MEMORY = Metric(
    name="twinlake_jvm_resident_memory_bytes", unit=BYTES, of=BOTH,
    meaning="Memory that the process's JVM holds, as the system counts it: heap and all else.",
)  # fmt: skip
HEAP_USED = Metric(
    name="twinlake_jvm_heap_used_bytes", unit=BYTES, of=BOTH,
    meaning="Heap of the JVM in use, what the next garbage collection frees included.",
)  # fmt: skip
HEAP_MAX = Metric(
    name="twinlake_jvm_heap_max_bytes", unit=BYTES, of=BOTH,
    meaning="The most that the heap of the JVM may take.",
)  # fmt: skip
DISK_FREE = Metric(
    name="twinlake_disk_free_bytes", unit=BYTES, of=BOTH, labels=("folder",),
    meaning="Room that is left for Twinlake on the disk of the `lake`, the `data` directory, or the SQL "
    "server's `scratch` folder; nothing for a lake in a store.",
)  # fmt: skip
DISK_SIZE = Metric(
    name="twinlake_disk_size_bytes", unit=BYTES, of=BOTH, labels=("folder",),
    meaning="The size of the same disk.",
)  # fmt: skip
UNANSWERED = Metric(
    name="twinlake_scrape_failed_groups", unit="groups of metrics", of=EVERY,
    meaning="How many groups of metrics are missing in this scrape, because asking for them failed; the log "
    "of the process says why.",
)  # fmt: skip

# -- topics and their logs

TOPIC_LAG = Metric(
    name="twinlake_topic_lag_records", unit=RECORDS, labels=("topic",),
    meaning="Offsets in Kafka that the topic's log has not reached, asked once a second.",
)  # fmt: skip
TOPIC_STATE = Metric(
    name="twinlake_topic_state", unit=YES, labels=("topic", "state"),
    meaning="1 for the state that the topic's ingest is in, 0 for the others.",
)  # fmt: skip
TOPIC_ERROR = Metric(
    name="twinlake_topic_error", unit=YES, labels=("topic",),
    meaning="Whether the topic has an error: ingest fails or has stopped, its contract is wrong, or a file "
    "of its log is damaged.",
)  # fmt: skip
TOPIC_RECORDS = Metric(
    name="twinlake_topic_records", unit=RECORDS, labels=("topic", "verdict"),
    meaning="Records of the log by their latest verdict; a replay moves some from one verdict to another.",
)  # fmt: skip
TOPIC_LATE = Metric(
    name="twinlake_topic_late_records", unit=RECORDS, labels=("topic",),
    meaning="Valid records of the log that came after the contract's `lateAfter`.",
)  # fmt: skip
TOPIC_UNREADABLE = Metric(
    name="twinlake_topic_unreadable_records", unit=RECORDS, labels=("topic",),
    meaning="Records in quarantine that wait for a schema which can read them.",
)  # fmt: skip
TOPIC_LOST = Metric(
    name="twinlake_topic_lost_records", unit=RECORDS, labels=("topic",),
    meaning="Offsets that Kafka had deleted before they were read, accepted by an operator.",
)  # fmt: skip
TOPIC_DELETED = Metric(
    name="twinlake_topic_deleted_records", unit=RECORDS, labels=("topic",),
    meaning="Records that retention has deleted from the log so far, for which the rows of tables stay.",
)  # fmt: skip
TOPIC_EXPIRED = Metric(
    name="twinlake_topic_deleted_timestamp_seconds", unit=SECONDS, labels=("topic",),
    meaning="When retention has deleted last, in seconds since 1970; nothing where it never has.",
)  # fmt: skip
TOPIC_BATCH = Metric(
    name="twinlake_topic_batch", unit="batch number", labels=("topic",),
    meaning="The newest batch of the log.",
)  # fmt: skip
TOPIC_WATERMARK = Metric(
    name="twinlake_topic_watermark_timestamp_seconds", unit=SECONDS, labels=("topic",),
    meaning="The watermark of the log, an event time in seconds since 1970.",
)  # fmt: skip
TOPIC_INGESTED = Metric(
    name="twinlake_topic_ingested_timestamp_seconds", unit=SECONDS, labels=("topic",),
    meaning="When the newest batch was added to the log, in seconds since 1970.",
)  # fmt: skip
BATCH_TIME = Metric(
    name="twinlake_batch_seconds", type=HISTOGRAM, unit=SECONDS, labels=("topic",), buckets=LONG,
    meaning="How long ingest took for a micro-batch, from its beginning to its commit in the log.",
)  # fmt: skip
COMMIT_TIME = Metric(
    name="twinlake_commit_seconds", type=HISTOGRAM, unit=SECONDS, labels=("of",), buckets=SHORT,
    meaning="How long a commit by put-if-absent took, of a `log` or of a `table`; a large batch or step that "
    "Spark commits is in its batch or step alone.",
)  # fmt: skip

# -- versions of tables

VERSION_LAG = Metric(
    name="twinlake_version_lag_records", unit=RECORDS, labels=("table", "version"),
    meaning="Records of the log that the version has not taken yet.",
)  # fmt: skip
VERSION_BEHIND = Metric(
    name="twinlake_version_lag_seconds", unit=SECONDS, labels=("table", "version"),
    meaning="How long the first record that the version lacks has been in the log, 0 where it lacks none.",
)  # fmt: skip
VERSION_POSITION = Metric(
    name="twinlake_version_batch", unit="batch number", labels=("table", "version", "topic"),
    meaning="The batch of the topic's log up to which the version is.",
)  # fmt: skip
VERSION_LIVE = Metric(
    name="twinlake_version_live", unit=YES, labels=("table", "version"),
    meaning="Whether the live release has the version, so that readers see it.",
)  # fmt: skip
VERSION_STALLED = Metric(
    name="twinlake_version_stalled", unit=YES, labels=("table", "version"),
    meaning="Whether the version stands still, for an error or because somebody has paused it.",
)  # fmt: skip
VERSION_LOST = Metric(
    name="twinlake_version_lost", unit=YES, labels=("table", "version"),
    meaning="Whether the version can never go on, so that `twinlake plan` builds it again.",
)  # fmt: skip
VERSION_PAUSED = Metric(
    name="twinlake_version_paused", unit=YES, labels=("table", "version"),
    meaning="Whether the version, or what it reads, stands still because somebody has said so.",
)  # fmt: skip
VERSION_FAILURES = Metric(
    name="twinlake_version_failures_total", type=COUNTER, unit="attempts", labels=("table", "version"),
    meaning="How often a step of the version, or opening it, has failed; each is tried again.",
)  # fmt: skip
STEP_TIME = Metric(
    name="twinlake_step_seconds", type=HISTOGRAM, unit=SECONDS, labels=("table", "version"), buckets=LONG,
    meaning="How long a step of the version took, its commit included.",
)  # fmt: skip
FRESHNESS = Metric(
    name="twinlake_freshness_seconds", type=HISTOGRAM, unit=SECONDS, labels=("table", "version"),
    buckets=LONG,
    meaning="At each step that reaches the log's end: how long before it Kafka had appended the newest "
    "record that the version shows since; Kafka's clock against this machine's.",
)  # fmt: skip

# -- tables as readers see them

RELEASE = Metric(
    name="twinlake_release_number", unit="release number", of=BOTH,
    meaning="The live release, as the process knows it; 0 before the first.",
)  # fmt: skip
TABLE_FRESHNESS = Metric(
    name="twinlake_table_freshness_seconds", unit=SECONDS, labels=("table",),
    meaning="How old readers see the table: for how long the first record that its live version lacks has "
    "been in the log, 0 where it lacks none.",
)  # fmt: skip
TABLE_WATERMARK = Metric(
    name="twinlake_table_watermark_timestamp_seconds", unit=SECONDS, labels=("table",),
    meaning="The watermark up to which the live version of a stored table is, an event time in seconds "
    "since 1970.",
)  # fmt: skip
CERTIFICATE = Metric(
    name="twinlake_certificate_verdict", unit=YES, labels=("table", "verdict"),
    meaning="1 for what the newest certificate of the live version says: speed and batch are `equal` or "
    "differ (`differs`), the view cannot be read (`raises`), or there is `none` yet; 0 for the others.",
)  # fmt: skip
CERTIFIED = Metric(
    name="twinlake_certificate_timestamp_seconds", unit=SECONDS, labels=("table",),
    meaning="When the newest certificate of the live version was made, in seconds since 1970.",
)  # fmt: skip
CERTIFIED_WHOLE = Metric(
    name="twinlake_certificate_whole_timestamp_seconds", unit=SECONDS, labels=("table",),
    meaning="When all of history was last compared at once for that certificate, in seconds since 1970.",
)  # fmt: skip
WITNESS = Metric(
    name="twinlake_witness_verdict", unit=YES, labels=("table", "verdict"),
    meaning="1 for what the witness has said of the live version, by its newest certificate: `equal`, "
    "`differs`, `not_witnessed` (it says why), `failed`, or `none` where it was not asked; 0 for the others.",
)  # fmt: skip
WITNESSED = Metric(
    name="twinlake_witness_timestamp_seconds", unit=SECONDS, labels=("table",),
    meaning="When the witness has said so, in seconds since 1970.",
)  # fmt: skip
TOPIC_WITNESS = Metric(
    name="twinlake_topic_witness_verdict", unit=YES, labels=("topic", "verdict"),
    meaning="The same of the topic's ingest: whether a second decoder finds in a sample what the log has.",
)  # fmt: skip
TOPIC_WITNESSED = Metric(
    name="twinlake_topic_witness_timestamp_seconds", unit=SECONDS, labels=("topic",),
    meaning="When the witness has said so of the topic, in seconds since 1970.",
)  # fmt: skip

# -- what goes along with live tables: changelogs, published tables and webhooks

OUTPUT_ERROR = Metric(
    name="twinlake_output_error", unit=YES, labels=("output", "table"),
    meaning="Whether the `changelog` of the table is not sent, what is `published` of it not written, or its "
    "`webhook` not delivered, for an error; it is tried again.",
)  # fmt: skip
OUTPUT_POSITION = Metric(
    name="twinlake_output_position", unit="batch number", labels=("output", "table", "topic"),
    meaning="The last batch of the topic's log that is in what was sent or published last.",
)  # fmt: skip
OUTPUT_AT = Metric(
    name="twinlake_output_timestamp_seconds", unit=SECONDS, labels=("output", "table"),
    meaning="When something was sent or published last, in seconds since 1970; nothing where it never was.",
)  # fmt: skip

# -- the lake and what runs for it

DAMAGED = Metric(
    name="twinlake_damaged_files", unit="files",
    meaning="Files of the lake that are gone or changed, as far as somebody has met them.",
)  # fmt: skip
BACKUP = Metric(
    name="twinlake_backup_timestamp_seconds", unit=SECONDS,
    meaning="When the newest backup in the folder of `[backup]` was taken, in seconds since 1970; while "
    "there is none, when the first release went live. Nothing where no folder is set.",
)  # fmt: skip
BACKUP_FAILED = Metric(
    name="twinlake_backup_failed", unit=YES,
    meaning="Whether the last backup that the lake server took has failed and none was taken since, or the "
    "folder cannot be read; nothing where none is set.",
)  # fmt: skip
SERVICE_READY = Metric(
    name="twinlake_service_ready", unit=YES, labels=("service",),
    meaning="Whether the supervisor has seen the process of a service get ready, and not end since; nothing "
    "where services run in containers.",
)  # fmt: skip
SERVICE_RESTARTS = Metric(
    name="twinlake_service_restarts_total", type=COUNTER, unit="restarts", labels=("service",),
    meaning="How often the supervisor has had to start the process of a service again since `twinlake up`.",
)  # fmt: skip

# -- queries

QUERIES = Metric(
    name="twinlake_queries_total", type=COUNTER, unit="statements", of=(SQL,),
    labels=("endpoint", "outcome"),
    meaning="Statements by `http`, `jdbc` or `flight` that have ended: answered (`ok`); wrong, refused or "
    "raising (`error`); `stopped` for their time or by somebody; their client gone (`left`; over JDBC that, "
    "and what the client cancelled); not started (`busy`); an error of the server's (`failed`). Over Flight "
    "SQL one that its driver has analysed before is counted for that, too.",
)  # fmt: skip
QUERY_TIME = Metric(
    name="twinlake_query_seconds", type=HISTOGRAM, unit=SECONDS, of=(SQL,), buckets=LONG,
    meaning="How long a statement over HTTP or Flight SQL took that was answered, from its turn to the first "
    "of its rows.",
)  # fmt: skip
QUERIES_RUNNING = Metric(
    name="twinlake_queries_running", unit="statements", of=(SQL,),
    meaning="Statements over HTTP that run or wait for their turn.",
)  # fmt: skip
READERS = Metric(
    name="twinlake_readers", unit="readers", of=(SQL,),
    meaning="Readers who follow a table now; at most 200 may.",
)  # fmt: skip
READER_EVENTS = Metric(
    name="twinlake_reader_events_total", type=COUNTER, unit="events", of=(SQL,),
    meaning="Events sent to readers who follow a table, each part of a change for itself, comments aside.",
)  # fmt: skip
READERS_CUT_OFF = Metric(
    name="twinlake_readers_cut_off_total", type=COUNTER, unit="readers", of=(SQL,),
    meaning="Readers who followed a table and were cut off, for they took nothing for 30 seconds.",
)  # fmt: skip
FOLLOW_ERROR = Metric(
    name="twinlake_follow_error", unit=YES, of=(SQL,),
    meaning="Whether the SQL server cannot follow the release log, so that readers may see what is old.",
)  # fmt: skip
LAKE_SILENT = Metric(
    name="twinlake_lake_server_silent_seconds", unit=SECONDS, of=(SQL,),
    meaning="For how long the lake server has reported nothing to readers; 0 while it reports every few "
    "seconds.",
)  # fmt: skip

# -- the console

CONSOLE_REQUESTS = Metric(
    name="twinlake_console_requests_total", type=COUNTER, unit="requests", of=(CONSOLE,),
    labels=("page", "status"),
    meaning="Requests by the path of the page (`/jobs/{id}` for all of them, `other` for what is none) and "
    "the HTTP status of the answer; those that were refused are in it.",
)  # fmt: skip
CONSOLE_QUERIES = Metric(
    name="twinlake_console_queries_total", type=COUNTER, unit="statements", of=(CONSOLE,),
    labels=("outcome",),
    meaning="What people had the console ask the SQL server, statements and the records behind a row, by "
    "how it ended: answered (`ok`); wrong, refused or raising (`error`); not started, or stopped for the "
    "time that it took (`busy`); the SQL server did not answer (`unreachable`); anything else (`failed`).",
)  # fmt: skip
CONSOLE_SESSIONS = Metric(
    name="twinlake_console_sessions", unit="browsers", of=(CONSOLE,),
    meaning="Browsers in which somebody is signed in.",
)  # fmt: skip

METRICS: tuple[Metric, ...] = tuple(one for one in list(globals().values()) if isinstance(one, Metric))
"""All of them, in the order of this file."""


def metrics_of(process: Process) -> tuple[Metric, ...]:
    return tuple(one for one in METRICS if process in one.of)
