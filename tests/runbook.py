"""Which errors docs/runbook.md has to have, which it leaves out and why, and which tests follow them."""

from __future__ import annotations

import re
from pathlib import Path

MODULES = (
    "backup/archive", "backup/restore", "backup/take", "base/files", "changelog/destination",
    "changelog/event_form", "changelog/new_rows", "changelog/sender",
    "config/settings", "config/settings_file", "config/users", "ingest/accept",
    "ingest/log_end", "ingest/source", "ingest/unreadable", "ingest/writers", "lake/catalog/failing_record",
    "lake/catalog/maintained_version", "lake/catalog/plans", "lake/catalog/release_log",
    "lake/delta/appender", "lake/delta/delta", "lake/delta/table_state", "lake/formats", "lake/log/log",
    "lake/self_check", "lake/storage/damage", "lake/storage/fit", "lake/storage/hdfs_store",
    "lake/table_workers", "metrics/endpoint", "published/publisher", "reading/client", "reading/export",
    "reading/export_client", "releases/analysed", "releases/promote",
    "releases/stranded", "server/backups", "server/client", "server/jobs", "server/lease", "server/lock",
    "server/topic_watch", "services/airflow", "services/checks/airflow", "services/checks/finding",
    "services/checks/kafka", "services/checks/registry", "services/ports", "services/problems",
    "services/rotation", "services/sql", "services/supervise/control", "services/supervise/process",
    "services/supervise/record", "spark/cluster", "spark/jvm", "spark/watch", "speed/advance",
    "speed/owner", "speed/wait_progress", "topics/kafka", "topics/refusal", "topics/registry",
)  # fmt: skip
"""Those of `twinlake/` whose errors a running system meets."""

_LEFT_OUT: dict[str, dict[str, tuple[str, ...]]] = {
    "what a command or a job was asked is wrong, and the error says it all": {
        "backup/restore": (
            "… is no path in a data directory", "… is a mount point",
            "a restore into this data directory was interrupted",
        ),
        "backup/archive": ("there is no backup …", "backup … was removed while it was read"),
        "backup/take": (
            "there is no lake at …", "another lake has taken the place of … while it was backed up",
        ),
        "base/files": ("… is there already", "… cannot be written"),
        "changelog/destination": (
            "topic … has records already", "topic … holds something else than positions",
            "a row of … is too large for …",
        ),
        "changelog/event_form": (
            "table … has no column …, which its events' … is made of", "column … of … is …",
        ),
        "config/settings": (
            "the data directory cannot be …", "there is no project here", "… is not a list of examples",
        ),
        "config/users": (
            "… cannot be the name of a user", "there is no user …", "there is no role …",
            "there is a user … already",
        ),
        "ingest/accept": ("Kafka has no topic …", "there is nothing to accept for topic …"),
        "lake/catalog/maintained_version": ("… cannot be computed up to batch … of topic …",),
        "lake/catalog/plans": ("there is no plan …", "… is not the id of a plan"),
        "lake/catalog/release_log": (
            "nothing can be rolled back", "release … cannot be rolled back", "there is no release …",
            "release … is live already",
        ),
        "releases/promote": (
            "nothing was rolled back: production has moved", "table … of plan … is not built",
        ),
        "releases/analysed": ("…, which is not open", "…, which this lake has not"),
        "reading/client": ("the answer broke off", "the answer was not read"),
        "reading/export_client": ("the answer broke off", "the batches were closed"),
        "server/backups": ("no folder of backups is set",),
        "server/client": ("there is no … …", "the lake server's token cannot be sent"),
        "server/jobs": (
            "there is no job kind …", "there is no job …", "key … belongs to another job",
        ),
        "services/rotation": (
            "there is no secret … to rotate", "nothing can be rotated", "… cannot be rotated",
        ),
        "services/supervise/control": (
            "there is no service …", "no service is left to start", "the … is not ours",
            "the services of this data directory run in containers", "… was ended before it was ready",
        ),
        "metrics/endpoint": ("the request was refused",),
    },
    "it is said when something is set up for the first time, by `twinlake doctor` or `up`": {
        "base/files": ("… holds no password",),
        "ingest/log_end": ("there is no topic … yet",),
        "lake/delta/delta": ("… is …: a commit of Spark's could overwrite another one",),
        "lake/storage/fit": ("the lake cannot be in …",),
        "reading/client": ("the SQL server cannot be asked",),
        "server/client": (
            "the certificates in … cannot be read",
            "the certificate of the lake server's address is not trusted",
        ),
        "services/checks/airflow": ("the Airflow at … is of version …",),
        "services/checks/kafka": (
            "topic … has no id", "topic … has timestamps that producers set (…)", "topic … is compacted (…)",
        ),
        "services/checks/registry": ("subject … has the rule …",),
        "services/supervise/control": ("the jars are not here",),
        "spark/cluster": (
            "[spark] conf may not set … to … without a cluster", "[spark] conf may not set …",
            "the driver's ports are to be reached by …, and nothing asks who comes",
            "Spark's own pages are to be reached by …, and ask nobody who comes", "…, …, is empty",
            "executors on other machines cannot read this machine's own Kafka", "…, …, cannot be read",
            "Kafka's passwords and keys would be readable on the way to the executors",
            "the Spark master at … is …",
        ),
        "services/airflow": ("`airflow … …` failed",),
    },
    "it is over by itself within seconds": {
        "ingest/log_end": ("topic … was made again",),
        "ingest/writers": ("schema … of topic … became another while it was read",),
        "lake/delta/appender": (
            "files of … were replaced while they were merged", "there is a table in … already",
        ),
        "speed/owner": ("… is not open yet", "… is stalled"),
    },
    "it is about a definition or a schema, of which `twinlake check` says more": {
        "topics/registry": ("the registry refused the new schema of …",),
        "lake/table_workers": ("table … is not live",),
    },
    "it is the error of a file that its caller names": {
        "config/settings_file": ("… …",),
    },
}  # fmt: skip


def _by_module() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for reason, modules in _LEFT_OUT.items():
        for module, texts in modules.items():
            found.setdefault(module, {}).update(dict.fromkeys(texts, reason))
    return found


EXCEPTED = _by_module()
"""Module -> what an error of it says -> why the page does not have it."""


def followed_by(file: Path = Path(__file__).with_suffix(".txt")) -> dict[str, list[str]]:
    """What an error of the page says -> the tests that do what it says to do."""
    blocks = re.findall(r"^(?![# ])(.+)\n((?: {4}.+\n)+)", file.read_text(), re.MULTILINE)
    return {what: tests.split() for what, tests in blocks}
