"""What the commands print that show tables, their rows, and where their rows come from."""

from __future__ import annotations

from twinlake.cli.shapes.shared import POSITION, RUNNING
from twinlake.cli.shapes.value import Value, keys, of
from twinlake.server.table_facts import TableFacts

_ROW = "An object for each row; its keys are the columns"
_SOURCE = keys("""
    owner   string  the topic or table
    column  string  its column
""")
_RECORD = keys("""
    topic      string          the topic
    epoch      integer         how often the topic was made again before
    partition  integer         the partition
    offset     integer         the offset in it
    batch      integer         the batch of the log that has it
    timestamp  string          when Kafka appended it
    id         string or null  the value of the field by which the contract says that records are unique
""")
TABLES = Value(
    name="tables", type="list of object", about="An object for each table, in the order of their names.",
    keys=keys("""
        table           string           its name
        version         string           the live version; one of its others where none is live
        live            boolean          whether that version is live
        state           string           `maintained`, `stalled`, `paused`, `reads its logs` or `lost`
        behind_seconds  number or null   seconds since the oldest record came that it lacks; null: not known
        equal           boolean or null  whether its newest certificate says that speed and batch agree; null
                                         where there is none
    """),
)  # fmt: skip
DESCRIBE = Value(
    name="describe", type="object", about="What a table means, as `GET /tables/{name}` says it.",
    keys=of(
        TableFacts, """
        name          its name
        live          the live version; null where none is
        purpose       what it is for, as its contract says
        row           what one row is, as its contract says
        kind          the kind of its definition, such as `aggregate`
        keys          its key columns
        stored        whether its rows are stored; else they are computed when it is read
        windows       whether its rows are of windows of time
        topics        the topics that it is made of
        reads         the tables that it reads
        read_by       the live tables that read it
        columns       its columns, in order
        definition    the definition as data
        versions      its versions, the newest first
        certificates  the newest 20, the newest first
        releases      the newest 20 that changed its version, the newest first
        """,
        columns=keys("""
            name     string          its name
            meaning  string          what its contract says of it; empty where that says nothing
            key      boolean         whether it is a key column
            type     string          its type, as its contract says; empty where that says nothing
            made_of  list of object  the columns that it is made of
            used_by  list of object  the columns that are made of it
        """, made_of=_SOURCE, used_by=_SOURCE),
        decided_by=_SOURCE, definition=(),
        versions=keys("""
            name        string            its name
            state       string            `living`, or `retired`: maintained no more
            created_at  string            when it was made
            git_commit  string or null    the commit of the project, where it is in git
            retired_at  string or null    when it was retired
            reads       object of string  by table that it reads, the version of that
            contracts   object of string  by topic, the version of its contract when it was made
            releases    list of integer   the numbers of the releases in which it was live
        """),
        certificates="certificate summary", releases="release with changes",
    ),
)  # fmt: skip
QUERY = Value(
    name="query", type="list of object",
    about=f"{_ROW} of the answer; a second one of the same name has a number.",
)
GET = Value(name="get", type="list of object", about=f"{_ROW} of the table.")
EXPLAIN = Value(
    name="explain", type="object", about="A row, and the records that it is made of.",
    keys=keys(f"""
        table       string             the table
        version     string             the version that has the row
        release     integer            the release that was read
        position    object of integer  {POSITION}
        computed    list of object     tables that were computed from the log to answer
        row         object             the row, by column
        partitions  list of object     an object for each partition that has records of the row
        decided     object or null     the record that decided the row, where one did
        records     list of object     the first 20 records of each topic
    """, computed=keys("""
        table  string  the table
        why    string  why it was computed
    """), partitions=keys("""
        topic           string          the topic
        through         list of string  the ways from the table to it, such as `big < sales < orders`
        epoch           integer         how often the topic was made again before
        partition       integer         the partition
        records         integer         how many records of the row are in it
        first_offset    integer         the least offset of those
        last_offset     integer         the greatest
        batches         integer         in how many batches of the log they are
        first_batch     integer         the first of those
        last_batch      integer         the last of those
        first_appended  string          when Kafka appended the first of them
        last_appended   string          when it appended the last of them
    """), decided=_RECORD, records=_RECORD),
)  # fmt: skip
QUARANTINE = Value(
    name="quarantine", type="object", about="What of a topic is in quarantine, and what was replayed.",
    keys=keys("""
        topic     string             the topic
        records   object of integer  by verdict, how many records are in quarantine
        groups    list of object     the same by reason; a record with two reasons is in two of them
        replayed  list of object     what replays have changed, by what records were and became
    """, groups=keys("""
        verdict   string          the verdict
        reason    string          the reason
        contract  string          the version of the contract that they were validated by
        records   integer         how many they are
        first     string          when Kafka appended the first of them
        last      string          when it appended the last
        samples   list of object  the newest of them, as many as `--limit` says
    """, samples=keys("""
        epoch      integer         how often the topic was made again before
        partition  integer         the partition
        offset     integer         the offset in it
        timestamp  string          when Kafka appended it
        key        string or null  the first 200 bytes of the key, as hex digits
        value      string or null  the first 200 bytes of the value, as hex digits
    """)), replayed=keys("""
        first_verdict   string          the verdict before
        first_reasons   list of string  the reasons before
        first_contract  string          the version of the contract before
        verdict         string          the verdict since
        reasons         list of string  the reasons since
        contract        string          the version of the contract since
        records         integer         how many they are
        first_batch     integer         the first batch of the log that has them
        last_batch      integer         the last
    """)),
)  # fmt: skip
QUERIES = Value(name="queries", type=f"list of {RUNNING.name}", about="The oldest first.")
QUERIES_CANCEL = Value(name="queries cancel", type=RUNNING.name, about="As it was listed before.")
