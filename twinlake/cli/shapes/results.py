"""What the commands print that ask the lake server for a job and wait for its end."""

from __future__ import annotations

from twinlake.batch.ended import Ended
from twinlake.batch.maintain import Maintained
from twinlake.batch.retention import Expired, Expiry
from twinlake.cli.shapes.shared import CERTIFIED, GATE, POSITION, PUBLISHED, SWITCHED
from twinlake.cli.shapes.shared import CHANGELOG as CHANGELOG_STATUS
from twinlake.cli.shapes.shared import WEBHOOK as WEBHOOK_STATUS
from twinlake.cli.shapes.value import Value, keys, of
from twinlake.ingest.accept import Accepted
from twinlake.ingest.replay import Replayed
from twinlake.lake.catalog.plans import Change, Plan, Rejected
from twinlake.releases.build import Built
from twinlake.releases.comparison import ComparedColumn, ComparedVersion, Comparison, Sample
from twinlake.releases.over_time import Lines, OverTime
from twinlake.releases.retire import Retired
from twinlake.server.pause_jobs import Pausing
from twinlake.server.reload_jobs import Reloaded

JOB_ID = keys("job  string  the job's id")
JOB_STATE = (*JOB_ID, *keys("state  string  how it ended: `succeeded` or `failed`"))
SUCCEEDED = (*JOB_ID, *keys("state  string  how it ended: `succeeded`"))
PLAN = Value(
    name="plan", type="object", about="What the definitions would change, and its cost.",
    keys=(
        *of(Plan, """
            id              its id
            release_before  the number of the release that is live
            changes         an object for each table, after those that it reads
            definitions     by table, the definition as data
            created_at      when it was made
            git_commit      the commit of the project, where it is in git
        """, changes=of(Change, """
            table             the table
            action            what would become of it
            fingerprint       of what the definition means; null of a table that goes
            blue              the live version
            green             a version that means the same and is there already; else one is built
            why               what is different, a line each
            records           records of the logs that are read for it
            bytes             how long they are
            minutes_estimate  minutes that it may take
            reaches_back      whether it is made of all of history
            history           why not, or what is lacking; empty where nothing is
        """)),
        *keys("""
            empty   boolean         whether readers would see nothing change
            lines   list of string  the plan as people read it
            wrong?  list of error   what is wrong with files whose definitions are not in it
        """),
    ),
)  # fmt: skip
BUILD = Value(
    name="build", type="object", about="The versions that a plan would make live.",
    keys=of(Built, """
        plan          the plan's id
        greens        by table, the new version
        built         the tables of which it was not there before
        records       records of the logs that were read
        seconds       how long it took
        certificates  by table, the certificate of its new version; null where its log is empty
    """, certificates="certificate"),
)  # fmt: skip
_LINES = of(Lines, """
    name   what it is: `rows`, or a column
    blue   what the live version has, by interval; null where there is nothing
    green  what the new version has
""")
_SIDE = of(ComparedVersion, """
    version        the version
    delta_version  the version of its Delta table; null of a table that stores no rows
""")
_COMPARISON = of(
    Comparison, f"""
    table          the table
    blue           the live version, or the one that was named
    green          the new version
    position       {POSITION}, of both
    keys           the key columns
    common         keys that both have
    changed        those of them whose rows differ
    only_blue      keys that blue alone has
    only_green     keys that green alone has
    columns        the columns that both have
    columns_only_blue   the columns that blue alone has
    columns_only_green  the columns that green alone has
    samples        the rows that differ most, at most 20 of each kind
    over_time      where in time they differ
    """,
    blue=_SIDE, green=_SIDE,
    columns=of(ComparedColumn, """
        name         its name
        type         its type
        changed      common keys whose rows differ in it
        blue_total   what blue has in all, where that means something
        green_total  what green has in all
    """),
    samples=of(Sample, """
        kind     `changed`, `only_blue` or `only_green`
        key      the row's key
        blue     the row as blue has it; null where it has none
        green    the row as green has it
        columns  those that differ
    """),
    over_time=of(OverTime, """
        column   the column of time that it is by
        seconds  the length of an interval
        at       where each interval begins, in seconds since 1970
        rows     how many rows there are
        first    the earliest time of a row that differs
        last     the latest
    """, rows=_LINES, totals=_LINES),
)  # fmt: skip
COMPARED = (*_COMPARISON, *keys("equal  boolean  whether the two are equal"))
"""How two versions of a table differ."""
DIFF = Value(
    name="diff", type="object", about="How the new versions of a plan differ from the live ones.",
    keys=keys("""
        plan   string          the plan's id
        equal  boolean         whether they are all equal
        diffs  list of object  an object for each table that has both
    """, diffs=(*COMPARED, *keys("report?  string  the file of the page that shows it"))),
)  # fmt: skip
GATE_ASKED = Value(
    name="gate", type="object", about="Exit code 1 where it has not passed. A [gate](#gate), and `report`.",
    keys=(*GATE.keys, *keys("report?  string  the file of the page that shows it")),
)
PROMOTE = Value(name="promote", type=SWITCHED.name, about="")
ROLLBACK = Value(name="rollback", type=SWITCHED.name, about="")
REJECT = Value(
    name="reject", type="object", about="That a plan shall not go live.",
    keys=(
        *keys("plan  string  the plan's id"),
        *of(Rejected, """
            by      who says so
            at      when
            reason  why
        """),
    ),
)  # fmt: skip
RETIRE = Value(
    name="retire", type="object", about="What is maintained, and what is no more.",
    keys=of(Retired, """
        releases  the numbers of the releases that one can go back to
        retired   `table version` of what is maintained no more
        busy      the same of what is left for the next time, because a job works on it
        living    the same of what is maintained
    """),
)
RELOAD = Value(
    name="reload", type="object", about="What became of the topics.",
    keys=of(Reloaded, """
        added       the topics that are read now
        edited      those that go on with new files
        removed     those that are read no more
        unchanged   all others
        applied     whether it was done
        classified  columns whose classification is another now, in words
    """),
)
ACCEPT = Value(
    name="topic accept", type="object", about="From where a topic goes on.",
    keys=of(Accepted, """
        topic     the topic
        epoch     how often it was made again
        batch     the batch of its log that says so
        topic_id  the id that Kafka gives it
        change    what had stopped it
        lost      by partition, the first offset that was lost and the one after the last
    """),
)
_CERTIFY = "Exit code 1 where speed and batch differ, or a second engine does."
VERIFY = Value(
    name="verify", type="object", about=f"{_CERTIFY} [Certified](#certified), with the job.",
    keys=(*JOB_STATE, *CERTIFIED.keys),
)
REBUILD = Value(
    name="rebuild", type="object", about=f"{_CERTIFY} [Certified](#certified), with the job.",
    keys=(*JOB_STATE, *CERTIFIED.keys),
)
REPLAY = Value(
    name="replay", type="object", about="What became of records in quarantine.",
    keys=(
        *JOB_ID,
        *of(Replayed, """
            topic     the topic
            contract  the version of the contract
            judged    records that were validated again
            replayed  those of them whose verdict or reasons are others now
            verdicts  how many of those there are, by their new verdict
            batches   the batches of the log that have them
        """),
    ),
)  # fmt: skip
EXPIRE = Value(
    name="expire", type="object", about="What retention has deleted, or with `--check` would delete.",
    keys=(
        *SUCCEEDED,
        *of(
            Expiry, """
            topics  an object for each topic whose contract says a retention
            tables  an object for each version whose definition says one
            """,
            topics=of(Expired, """
                topic      the topic
                retention  how long its records are kept, in words
                batch      the last batch of the log that goes; 0 where none does
                until      when Kafka appended the newest record that goes
                records    how many records go
                bytes      how much room becomes free, at least
                kept       the versions whose counts of these records stay
                needed_by  why nothing is deleted, a line for each table that needs them
                deleted    whether they are deleted
            """),
            tables=of(Ended, """
                table      the table
                version    its version
                retention  how long it shows its windows, in words
                before     where the first window begins that stays
                rows       how many states go
                bytes      how much room becomes free, at least
                deleted    whether they are deleted
            """),
        ),
    ),
)  # fmt: skip
MAINTAIN = Value(
    name="maintain", type="object", about="What was cleaned up.",
    keys=(
        *SUCCEEDED,
        *of(Maintained, """
            commit_files_deleted  old commit files
            logs_compacted        the topics whose logs have larger files now
            versions_deleted      `table version` whose files are deleted
        """),
    ),
)  # fmt: skip
_PAUSING = """
    kind      what it is
    name      the name of the topic or table
    changed   whether it was otherwise before
    paused    since when it is paused, by whom and why; null once it is resumed
    position  of a table that is paused, by version where that is: by topic, the last batch of its log
"""
PAUSE = Value(
    name="pause", type="object", about="What is paused.",
    keys=of(Pausing, _PAUSING, paused="paused"),
)
RESUME = Value(
    name="resume", type="object", about="What goes on.",
    keys=of(Pausing, _PAUSING, paused="paused"),
)
CHANGELOG = Value(
    name="changelog", type=f"list of {CHANGELOG_STATUS.name}",
    about="Those that are on; the one that was named, where it was.",
)
WEBHOOK = Value(
    name="webhook", type=f"list of {WEBHOOK_STATUS.name}",
    about="Those that are on; the one that was named, where it was.",
)
PUBLISH = Value(
    name="publish", type=f"list of {PUBLISHED.name}",
    about="Those that are published; the one that was named, where it was.",
)
