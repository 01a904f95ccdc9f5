"""What the commands print that are about running it: jobs, releases, users, alarms, backups, and the rest."""

from __future__ import annotations

from twinlake.alarms.alarm import Alarm
from twinlake.alarms.book import Silence
from twinlake.backup.check import Checked
from twinlake.cli.disk import KINDS, Place
from twinlake.cli.shapes.shared import BACKUP, JOB
from twinlake.cli.shapes.value import Value, keys, of
from twinlake.config.rights import Rights
from twinlake.lake.catalog.audit_log import Act
from twinlake.releases.disk import Freeable, Part
from twinlake.services.own_files import OwnFile
from twinlake.services.rotation import Rotated
from twinlake.topics.produce import Sent

DISK = Value(
    name="status --disk", type="object", about="What is on the disk, and what could be let go.",
    keys=keys("""
        home        string            the data directory
        at          string            when it was looked at
        places      list of object    an object for each folder that is counted
        freeable    list of object    what could be let go
        unknown     list of error     what could not be found out
        unreadable  object of string  by path, why it was not counted
    """, places=of(Place, """
        place       which folder it is: `data directory`, `lake`, `backups` or `jars`
        path        where it is
        bytes       how much is in it; null where it could not be counted
        free_bytes  how much of its disk is free; null of another machine's
        disk_bytes  how large that disk is
        parts       what is in it
    """, parts=of(Part, f"""
        kind         what it is: {", ".join(f"`{one}`" for one in KINDS)}
        name         of which topic, table or job; empty where it is of none
        version      of which version of the table
        state        of a version, whether it is live, kept, or used by nothing
        releases     the numbers of the kept releases that use it
        bytes        how much it takes
        files        how many files it has
        spare_bytes  of files that hold no row of now
    """)), freeable=of(Freeable, """
        by           what lets it go
        command      the command for that
        what         the names of what goes
        bytes        how much is free at once
        later_bytes  how much is free hours later
    """)),
)  # fmt: skip
PRODUCE = Value(
    name="produce", type="object", about="What was sent.",
    keys=(
        *keys("""
            topic  string   the topic
            seed   integer  by which the records were drawn
            run    string   the part of the event ids that is this run's
        """),
        *of(Sent, """
            sent          records that were handed to the broker
            acknowledged  records that it has
            seconds       how long it took
            faults        by kind of fault, how many were mixed in
        """),
        *keys("records_per_second  number  records a second"),
    ),
)  # fmt: skip
GALLERY = Value(
    name="gallery list", type="list of object", about="An object for each example.",
    keys=keys("""
        example  string          its name
        added    boolean         whether this data directory has it
        topics   list of string  its topics
        tables   list of string  its tables
        about    string          what it shows
    """),
)
RELEASES = Value(
    name="releases", type="list of release", about="Every release, the newest first; the first one is live."
)
JOBS = Value(name="jobs list", type="list of job", about="The newest first, as many as `--limit` says.")
FOLLOW = Value(
    name="jobs follow", type=JOB.name, about="As it ended; exit code 1 where it did not succeed."
)
CANCEL = Value(name="jobs cancel", type=JOB.name, about="As it is after at most 20 seconds.")
ALARMS = Value(
    name="alarm list", type="object", about="The alarms there are now.",
    keys=keys("""
        watched    boolean            whether somebody watches now
        looked_at  string or null     when that was done last
        alarms     list of object     the alarms
        silenced   list of object     what nobody hears of now
        unsent     object of integer  by receiver, messages that it has not accepted yet
        lost       object of integer  by receiver, messages that were left out because too many waited
    """, alarms=(*of(Alarm, """
        kind      its kind; see [alarms](alarms.md)
        title     what it is about, in a word or two
        what      what is not well
        why       the cause; empty where there is none to say
        remedy    what to do
        about     the table or topic that it is about
        since     since when
        owners    mail addresses of those who own that
        silenced  whether nobody hears of it
    """), *keys("""
        severity  string  how grave it is: `critical` or `warning`
        docs      string  where the documentation has it
    """)), silenced=of(Silence, """
        what    what is silenced: a kind, a table, a topic or a title
        until   until when
        reason  why
        by      who has done it
    """)),
)  # fmt: skip
AUDIT = Value(
    name="audit", type="list of object", about="An object for each act, the newest first.",
    keys=(
        *of(Act, """
            at        when it was asked for
            act       what it was, such as `promote`
            who       who asked for it
            via       by which way: `cli`, `console`, `airflow` or `api`
            why       why, where somebody said
            what      what was asked for, by parameter
            job       the job's id; of an act that is no job, that of its entry
            attempt   how often the job was started under the same key
            outcome   how it ended; null until it does
            ended_at  when it ended
        """),
        *keys("about  list of string  the tables, the topic or the changelog that it was about"),
    ),
)  # fmt: skip
_RIGHTS = tuple(
    Value(name=one.name, type=one.type, about=one.about, is_optional=True)
    for one in of(Rights, """
        tables  patterns of the tables that they read; all where it is missing
        hidden  `table.column` of what is not there for them
        masks   by classification or `table.column`, how it is masked: `hash`, `last4` or `null`
        rows    by table, the condition of the rows that they see
    """)
)
USERS = Value(
    name="users list", type="list of object", about="An object for each user.",
    keys=keys("""
        name      string   the name that they sign in by
        role      string   their role
        disabled  boolean  whether they may not sign in
        rights    object   what they may read; empty of who reads everything
    """, rights=_RIGHTS),
)
ROTATE = Value(
    name="rotate", type="object", about="What became of the secrets.",
    keys=keys("""
        rotated    list of object  an object for each secret
        own_files  list of object  what the settings name, and is yours to change
    """, rotated=of(Rotated, """
        name        its name
        answered    whether a server was there to be asked; else it knows the new one from its next start
        replaced_s  seconds until the new one was accepted
        refused_s   seconds until the old one was refused
    """), own_files=of(OwnFile, """
        setting  the setting that names it
        file     the file
        holds    when a new content of it does
    """)),
)  # fmt: skip
BACKUP_TAKE = Value(
    name="backup take", type="object", about="A [backup](#backup), and what went for it.",
    keys=(*BACKUP.keys, *keys("removed  list of string  the ids of older ones that went")),
)
BACKUP_LIST = Value(name="backup list", type="list of backup", about="The newest first.")
BACKUP_VERIFY = Value(
    name="backup verify", type="object", about="Exit code 1 where it is not whole.",
    keys=(
        *of(Checked, """
            id         its id
            files      how many files it has
            bytes      how long they are together
            differing  how many are gone, or have changed
            wrong      the first 20 of them, each with why
        """),
        *keys("is_whole  boolean  whether none is"),
    ),
)  # fmt: skip
RESTORE = Value(
    name="restore", type="object", about="A [backup](#backup), and where it is now.",
    keys=(*BACKUP.keys, *keys("""
        home  string  the data directory
        lake  string  where the lake is
    """)),
)  # fmt: skip
SUPPORT = Value(
    name="support", type="object", about="The file that was written.",
    keys=keys("""
        file    string           the file
        bytes   integer          how long it is
        files   list of string   what is in it
        failed  object of error  what is not, and why, by the name that it would have
    """),
)
UPGRADE = Value(
    name="upgrade", type="object", about="How the upgrade, or the way back, ended.",
    keys=keys("""
        step      string           `upgraded`, or `returned` after `--back`
        from      string           the version before; empty where nobody knows
        to        string           the version of the command
        services  list of string   the services that were started; empty: all
        release   integer or null  the number of the live release
        started   boolean          whether the version before was started again
        kept      list of string   where the lake of before is kept
    """),
)
UPGRADE_DONE = Value(
    name="upgrade --done", type="object", about="What was let go.",
    keys=keys("""
        freed_bytes  integer         how much room became free
        deleted      list of string  what was deleted
    """),
)
