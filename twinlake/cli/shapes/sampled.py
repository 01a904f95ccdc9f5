"""What `twinlake diff --sample` prints."""

from __future__ import annotations

from twinlake.cli.shapes.results import COMPARED
from twinlake.cli.shapes.value import Value, keys, of
from twinlake.releases.sampled import Against, Cost, SampledChange, SampledTopic, Taken

SAMPLED = Value(
    name="diff --sample", type="object",
    about="What changed definitions would show otherwise, over a sample of records. Exit code 1 where rows "
    "differ, else 3 where that is not known of a table.",
    keys=keys("""
        equal     boolean           whether no row of the tables that were compared differs
        against   string            what the definitions are compared with, for a person
        compared  list of object    an object for each table that both sides have; of those that a pattern
            meets, for each that is changed
        refused   object of string  by table, why what it shows is not known
        new       list of string    tables that the other side has not
        removed   list of string    tables that the other side alone has
    """, compared=(
        *of(SampledChange, """
            table       the table
            against     the other side
            changed     whether the definition means something else; nothing is compared where it does not
            why         what is different, a line each
            sample      which records both sides saw
            limits      what the sample cannot say, a sentence each
            comparison  how the rows of the sample differ: blue is the other side, green is `changed`
            cost        what a build would cost; null of records from files
            seconds     how long it took
        """,
            against=of(Against, """
                version  the live version; of records from files the commit
                release  the live release; null of records from files
            """),
            sample=of(Taken, """
                by          how they were taken: the newest records, all records of some keys, or files
                records     how many records both sides saw
                of_records  how many the logs have
                topics      by topic, where in its log they are
                keys        how many keys were drawn; null unless they were taken by keys
                whole       whether the sample is all of history
            """, topics=of(SampledTopic, """
                first_batch  the first batch
                last_batch   the last batch
                records      records of these batches
                begin        the earliest time that Kafka gave one of them
                end          the latest
            """)),
            cost=of(Cost, """
                builds            whether anything has to be built
                records           records of the logs that are read for it
                bytes             how long they are
                minutes_estimate  minutes that it may take
                reaches_back      whether it is made of all of history
                history           why not, or what is lacking
            """),
            comparison=COMPARED,
        ),
        *keys("equal  boolean  whether no row of the sample differs"),
    )),
)  # fmt: skip
