"""Shapes that several commands print, by the name that other shapes call them by."""

from __future__ import annotations

from twinlake.backup.archive import Backup
from twinlake.base.job import Job
from twinlake.batch.certify import Certified
from twinlake.cli.shapes.value import Value, keys, of
from twinlake.lake.catalog.certificates import Base, Certificate
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.releases.gate_checks import Check, Excuse, Gate
from twinlake.releases.promote import Switched
from twinlake.releases.timeline import Entry, Switch
from twinlake.witness.answer import Answer, Behind, Compared, Difference, RecordId

POSITION = "by topic, the last batch of its log that was taken"
ERROR = Value(
    name="error", type="object", is_open=True,
    about="What somebody can do something about. Some have more keys, such as `file`, `line` or `table`: "
    "what a program may want to know beside the words.",
    keys=keys("""
        error?  string  the [class of the error](#classes-of-errors)
        what    string  what happened
        why     string  the cause; empty where there is none to say
        remedy  string  what to do; empty where there is nothing to do
    """),
)  # fmt: skip
FINDING = Value(
    name="finding", type="object", is_open=True, about="An [error](#error), and where in the project it is.",
    keys=keys("""
        error   string           the class of the error
        what    string           what is wrong
        why     string           the cause; empty where there is none to say
        remedy  string           what to do; empty where there is nothing to do
        file    string or null   the file; null of what is in none
        line    integer or null  the line in it, from 1
        column  integer or null  the column in it, from 1
    """),
)
PROGRESS = keys("""
    done?         number          how much is done
    total?        number          of how much; 0 where it cannot be counted
    unit?         string          what is counted, such as `chunks`
    message?      string          what is being done
    eta_s?        number or null  seconds that are left, as far as can be guessed
    waiting_for?  string          what the job waits for, while it does
""")
JOB = Value(
    name="job", type="object", about="One piece of work of the lake server.",
    keys=of(Job, """
        id          the job's id
        kind        what it does, such as `verify`; see [the API](api.md#kinds-of-jobs)
        params      what was asked for, by parameter
        key         the idempotency key that it was asked for with
        state       how it is
        progress    how far it is; empty before it begins
        result      what it found or did: the shape of the command that asks for it; null until it ends
        error       why it did not succeed
        created_at  when it was asked for
        started_at  when it began
        ended_at    when it ended
        attempt     how often it was started under the same key
        idle_minutes  a running job: minutes without progress, where these are too many
    """, progress=PROGRESS, error="error"),
)  # fmt: skip
RECORD_ID = of(RecordId, """
    topic      the topic
    epoch      how often the topic was made again before
    partition  the partition
    offset     the offset in it
""")
BEHIND = of(Behind, """
    count  how many there are
    why    what keeps them from being listed; empty where nothing does
""", records=RECORD_ID)  # fmt: skip
_DIFFERENCE = """
    key      the row's key, values as text
    witness  the row as the second engine has it, values as text
    shown    the row as readers see it, values as text
    behind   the records that the row is made of
"""
DIFFERENCE = of(Difference, _DIFFERENCE, behind=BEHIND)
COMPARED = of(Compared, """
    verdict    what came of it
    why        why it is not witnessed, or how it failed
    differing  how many rows differ
""", differences=DIFFERENCE)  # fmt: skip
WITNESS = Value(
    name="witness", type="object", about="What a second engine makes of the same logs.",
    keys=of(Witnessed, f"""
        answer    what it found
        position  {POSITION}: where it looked
        at        when
    """, answer=of(Answer, """
        verdict    what came of it
        table      the table
        rows       rows that were compared
        differing  how many differ
        differences  the first of them
        cpu_s      seconds of CPU that it took
    """, differences=DIFFERENCE, final=COMPARED, late=COMPARED)),
)  # fmt: skip
_DIFFERENCES = keys("""
    key      object          the row's key
    cause    string          the class of the cause
    why      string          the same in words
    columns  list of string  those that differ
    speed    any             the row as the speed layer has it
    batch    any             the row as the batch layer has it
""")
_CERTIFICATE = f"""
    id                its id
    job               the job that made it
    kind              what the job did
    table             the table
    version           its version
    fingerprint       of what the definition means
    position          {POSITION}
    delta_version     the version of the Delta table that was compared; null of a table that stores no rows
    step              the last step of the speed layer that was in it
    through_segment   the last segment that was in it
    windows           the ranges of windows that were compared, from `start` to before `end`; null has no end
    rows_compared     rows that were compared
    differing         keys in which speed and batch differ
    equal             whether speed and batch agree
    differences       the first of those keys, at most 100
    created_at        when it was made
    base              what it goes on from, where it compared only what is new since
    evidence          what all rows of the version had counted, by name
"""
_BASE = of(Base, f"""
    certificate     the id of that certificate
    position        {POSITION}
    whole_position  the same, of the last comparison of all of history
    whole_at        when that was
    evidence        what all rows of the version had counted then, by name
""")
CERTIFICATE = Value(
    name="certificate", type="object",
    about="Whether what a version showed at a position is what its definition makes of the log.",
    keys=of(Certificate, _CERTIFICATE, differences=_DIFFERENCES, base=_BASE, witness=WITNESS.name),
)  # fmt: skip
SUMMARY = Value(
    name="certificate summary", type="object", about="A certificate without the rows that differ.",
    keys=(
        *of(Certificate, _CERTIFICATE, without=("differences",), base=_BASE, witness=WITNESS.name),
        *keys("""
            covers    string          what it covers, in words
            raises    string or null  why the table could not be read, where it could not be
            proof     string          which engines agree, in words; empty where no second one was asked
            disputed  boolean         whether the second engine differs, or failed
        """),
    ),
)  # fmt: skip
CERTIFIED = Value(
    name="certified", type="object", about="What a verify or a rebuild found.",
    keys=(
        *of(Certified, """
            certificate         the certificate, made after what was repaired
            replaced            whether rows were replaced
            chunks              parts of history that were computed
            chunks_done_before  those of them that an interrupted run had computed
            repaired            what a rebuild replaced, as `differences`
        """, certificate="certificate", repaired=_DIFFERENCES),
        *keys(f"""
            table          string             the table
            version        string             its version
            equal          boolean            whether speed and batch agree
            position       object of integer  {POSITION}
            rows_compared  integer            rows that were compared
            differing      integer            keys in which they differ
            differences    list of object     the first of them, at most 100
            covers         string             what was compared, in words
            proof          string             which engines agree, in words; empty where no second one was
                                              asked
            clocks         list of string     what the second engine says of what follows the log's clocks
            disputed       list of object     rows in which the second engine differs
        """, differences=_DIFFERENCES, disputed=(
            *DIFFERENCE, *keys("explain  string  the command that shows the row's records; may be empty")
        )),
    ),
)  # fmt: skip
_RELEASE = f"""
    number      its number, from 1
    kind        how it came to be
    tables      by table, the version that is live by it
    positions   by table, {POSITION} when it was made live
    created_at  when it was made live
    approved_by  who approved it
    plan        the plan's id
    git_commit  the commit of the project, where it is in git
"""
RELEASE = Value(
    name="release", type="object", about="What was made live together.", keys=of(Release, _RELEASE)
)
ENTRY = Value(
    name="release with changes", type="object", about="A release, and what it changed.",
    keys=(
        *of(Release, _RELEASE),
        *of(Entry, """
            live     whether it is live now
            back_to  of the live one: the release that a rollback makes live again
            changes  the tables whose version it changed
        """, without=("release",), changes=of(Switch, """
            table   the table
            before  the version before; null of a new one
            after   the version since; null of one that went
        """)),
    ),
)  # fmt: skip
SWITCHED = Value(
    name="switched", type="object", about="What is live after a promotion or a rollback.",
    keys=(
        *keys("release  integer  the number of the live release"),
        *of(Release, _RELEASE, without=("number", "git_commit", "job")),
        *of(Switched, """
            changed         false where it was live before
            follow_seconds  seconds until the SQL server had followed
            follow_problem  why it has not followed yet
        """, without=("release",)),
        *keys("followed  boolean  whether the SQL server has followed"),
    ),
)  # fmt: skip
GATE = Value(
    name="gate", type="object", about="Whether a plan may go live.",
    keys=(
        *of(Gate, """
            plan    the plan's id
            at      when it was asked
            checks  everything that was asked
        """, checks=of(Check, """
            table   the table; empty for what is of none
            name    what was asked, such as `certificate`, `witness` or `expectation`
            passed  whether it holds
            detail  the answer in words
        """), excused=of(Excuse, """
            reason   the reason
            by       who gave it
            refused  what the second engine cannot evaluate
            why      why not
        """)),
        *keys("passed  boolean  whether every check passed"),
    ),
)  # fmt: skip
PAUSED = Value(
    name="paused", type="object", about="What somebody has paused.",
    keys=(
        *of(Paused, """
            kind      what it is
            name      the name of the topic or table
            since     since when
            by        who paused it
            reason    why
            versions  of a table: the versions that stand still; empty where all do
        """),
        *keys("""
            what   string  what is paused, in words: `topic orders`
            words  string  since when, by whom and why, in words
        """),
    ),
)  # fmt: skip
BACKUP = Value(
    name="backup", type="object", about="One backup.",
    keys=(
        *of(Backup, """
            id           its id
            made_at      when it was made
            twinlake     the version of Twinlake that made it
            lake_id      the id of the lake
            lake_format  the format of the lake
            release      the number of the live release, if any
            logs         by topic, the newest batch of its log
        """, without=("files",)),
        *keys("""
            files  integer  how many files it has
            bytes  integer  how long they are together
        """),
    ),
)  # fmt: skip
CHANGELOG = Value(
    name="changelog", type="object", about="How a table's changes, or its rows as events, are sent.",
    keys=keys(f"""
        table     string             the table whose changes or rows are sent
        topic     string             the topic that they are sent to; of several all names, by comma
        topics    list of string     the topics
        sends     string             `changes` or `events`
        state     string             `starting`, `sending`, `paused` or `failing`; `stopped` by `--stop`
        release   integer or null    the release up to which it is sent
        version   string or null     the version of the table
        position  object of integer  {POSITION}
        records   integer            records that were sent last
        way       string             how they were found
        sent_at   string             when that was; empty before
        error     error or null      why it is not sent
    """),
)
PUBLISHED = Value(
    name="published table", type="object", about="How a table is kept for other engines.",
    keys=keys(f"""
        table         string             the table
        folder        string             where it is published
        state         string             `starting`, `published`, `paused`, `stalled` or `failing`; `stopped`
                                         by `--stop`
        release       integer or null    the release that it shows
        version       string or null     the version of the table
        position      object of integer  {POSITION}
        behind        object of integer  by topic, batches that it lacks; none where it lacks none
        files         integer            its data files
        bytes         integer            how long they are
        changed       integer            rows that were written last
        way           string             how they were found
        published_at  string             when that was; empty before
        error         error or null      why it is not published
    """),
)
WEBHOOK = Value(
    name="webhook", type="object", about="How a table's changes are posted.",
    keys=keys(f"""
        table     string             the table
        host      string             of the address; the rest of it is not shown
        state     string             `starting`, `sending` or `failing`; `stopped` by `--stop`
        release   integer or null    the release up to which it is accepted
        version   string or null     the version of the table
        position  object of integer  {POSITION}
        rows      integer            rows and keys that were accepted last
        way       string             how they were found
        sent_at   string             when that was; empty before
        tries     integer            how often it was not accepted since then
        error     error or null      why it is not delivered
    """),
)
RUNNING = Value(
    name="running query", type="object", about="What the SQL server runs for somebody.",
    keys=keys("""
        id            string           its id
        user          string           whose it is
        endpoint      string           how it came: `http`, `jdbc` or `flight`
        state         string           `waiting`, `running`, `sending` or `ending`
        sql           string           the statement; the first 2,000 characters
        started_at    string           when it came
        seconds       number           its age
        memory_bytes  integer or null  the memory that it holds; null: not known
    """),
)
SHARED: dict[str, Value] = {
    one.name: one
    for one in (
        ERROR, FINDING, JOB, RELEASE, ENTRY, SWITCHED, GATE, CERTIFICATE, SUMMARY, CERTIFIED, WITNESS, PAUSED,
        CHANGELOG, PUBLISHED, WEBHOOK, RUNNING, BACKUP,
    )
}  # fmt: skip
