"""What `status`, `doctor` and `check` print."""

from __future__ import annotations

from twinlake.cli.shapes.shared import POSITION
from twinlake.cli.shapes.value import Value, keys, of
from twinlake.lake.catalog.version import Health

_SERVICES = keys("""
    part      string          its name
    service   string          the service that it belongs to, as `--only` and `--without` name it
    given     boolean         whether it is external
    state     string          `ready`, `ended`, or how its start goes on: `waiting`, `preparing`, `starting`
    answers   boolean         whether it answers now
    answer    string          what it answered, or why it did not
    pid       integer or null  the id of its process; null where it has none here
    restarts  integer         how often it was started again
    since     string          since when it has its state
    note      string          what else there is to say of it
    error     error or null   what is wrong with it
""")
_TOPICS = keys("""
    name         string              its name
    state        string              `starting`, `validating`, `running`, `retrying`, `paused` or `stopped`
    paused       paused or null      since when it is paused, and why
    error        error or null       why it is not read, or what is damaged
    batch        integer or null     the last batch of its log
    epoch        integer or null     how often the topic was made again
    ends         object of integer   by partition, the offset that is read next
    records      integer or null     records in its log
    counts       object of integer   the same by verdict
    watermark    string or null      the watermark
    lag_records  integer or null     records in Kafka that the log lacks; null: not known
    lag_seconds  number or null      seconds since the oldest of those was seen
    newest       string or null      when Kafka appended the newest record of the log
    warnings     list of error       what is wrong around it, and stops nothing
    unreadable   list of object      what is in quarantine because the newest schema cannot read it
    deleted      object or null      what retention has deleted
    lost?        list of object      what Kafka had lost before it was read
""", unreadable=keys("""
    schema   integer  the id of the schema of its producer
    records  integer  how many records wait
    reason   string   the reason that they are marked with
    why      string   why they cannot be read
    remedy   string   what to do
"""), deleted=keys("""
    rows   integer  how many records
    batch  integer  up to which batch of the log
    until  string   up to which time
"""), lost=keys("""
    epoch      integer  how often the topic was made again before
    partition  integer  the partition
    from       integer  the first offset that was lost
    to         integer  the last
"""))  # fmt: skip
_VERSIONS = of(Health, f"""
    table        the table
    version      the version
    position     {POSITION}
    watermark    its watermark
    lag_records  records of its logs that it lacks
    lag_seconds  seconds since the oldest of those was appended to the log
    step         its last step; null of a table that stores no rows, and before the first one
    segment      the segment that it writes
    stalled      whether it takes no step, because of `error`
    error        why it is stalled
""", error="error", paused="paused")  # fmt: skip
_WATERMARK = keys("watermark  string or null  its watermark")[0]
STATUS = Value(
    name="status", type="object",
    about="Services, topics, versions and the live release. What the lake server says is empty or null while "
    "it does not answer. With `--disk` it is another object, see below.",
    keys=keys("""
        home                 string                       the data directory
        ready                boolean                      whether every service answers
        supervisor           boolean                      whether services that die are started again
        parts                list of object               an object for each service
        lake_id?             string                       the id of the lake
        topics               list of object               an object for each topic
        versions             list of object               an object for each version that is maintained
        release              release or null              the live release
        tables?              list of object               an object for each live table
        certificates         list of certificate summary  the newest of each live table
        topic_certificates?  list of object               the newest of each topic
        changelogs           list of changelog            the changelogs that are on
        published            list of published table      the tables that are published
        webhooks?            list of webhook               the tables whose changes are posted
        paused               list of paused               what somebody has paused
        spark                object or null               the Spark cluster, where there is one
        damaged              list of error                damaged files
        waiting?             object or null               the plan that waits for a person's approval
        backup               object or null               of backups, where a folder of theirs is set
        error?               error                        why the lake server does not say how it is
    """,
    parts=_SERVICES, topics=_TOPICS,
    versions=tuple(_WATERMARK if one.name == "watermark" else one for one in _VERSIONS),
    tables=keys("""
        name     string   its name
        version  string   its live version
        stored   boolean  whether its rows are stored
        windows  boolean  whether its rows are of windows of time
    """),
    topic_certificates=keys("""
        topic       string   the topic
        position    integer  the batch of its log up to which it was looked at
        created_at  string   when
        words       string   what was found, in words
        equal       boolean  whether a second decoder makes the same of its records
        disputed    boolean  whether it differs, or failed
        seed        integer  by which the sample was drawn
        sampled     integer  records of the sample
    """),
    spark=keys("""
        master     string         its address
        executors  integer        executors that work for the lake server
        cores      integer        their cores
        error      error or null  what is wrong with it
    """),
    waiting=keys("""
        plan    string          its id
        since   string          since when it waits
        tables  list of string  the tables that it changes
    """),
    backup=keys("""
        newest  string or null  when the newest was made
        since   string or null  where there is none: since when there might be
        failed  error or null   what is wrong with the folder, or why the last one failed
        error   error or null   that the last one failed, or the newest is too old
    """)),
)  # fmt: skip
DOCTOR = Value(
    name="doctor", type="object", about="Every setting, and what was looked at.",
    keys=keys("""
        home      string          the data directory
        file      string or null  the settings file, where there is one
        ok        boolean         whether nothing is wrong
        settings  list of object  every setting; none where the file is wrong
        checks    list of object  every check
    """, settings=keys("""
        name   string  its name, such as `limits.start_seconds`
        value  string  its value; of a secret only `(given)`
        from   string  `default`, the file's name, or the variable that it comes from
    """), checks=keys("""
        service  string         the service that it is about
        given    boolean        whether that is external
        checked  string         what was looked at
        ok       boolean        whether it is as it must be
        found    string         what was found; empty where it is wrong
        error    error or null  what is wrong
    """)),
)  # fmt: skip
CHECK = Value(
    name="check", type="object",
    about="What was found in the files of a project.",
    keys=keys("""
        ok         boolean         whether nothing is wrong
        topics     list of object  an object for each topic
        tables     list of object  an object for each table
        problems   list of finding  what is wrong
        warnings   list of finding  what may be wrong
        only_full  list of finding  what only `--full` can say
        unwarned   list of string  tables of which only `--full` can say whether an expression raises
    """, topics=keys("""
        name         string   its name
        schema       integer  the number of its newest schema
        contract     string   the version of its contract
        fingerprint  string   of what the contract means
    """), tables=keys("""
        name         string                  its name
        kind         string                  the kind of its definition
        inputs       list of string          the topics that it reads itself
        reads        list of string          the tables that it reads
        fingerprint  string or null          of what the definition means; null: not known without `--full`
        columns      list of object or null  its columns; null: not known without `--full`
    """, columns=keys("""
        name  string  its name
        type  string  its type
    """))),
)  # fmt: skip
