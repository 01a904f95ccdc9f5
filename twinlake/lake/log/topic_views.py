"""Topic views: what readers have of every topic from the moment its log is there, without a definition.

`<topic>_valid`, `<topic>_quarantine` and `<topic>_replayed` are in every release, whatever its tables read.
No table can have such a name. A `relation` is the log's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from twinlake.lake.log import quarantine
from twinlake.topics.contract import JSON, STRING, Contract

if TYPE_CHECKING:
    from twinlake.lake.log.log import Log

VALUE = "_value"
"""The whole body of a valid record of a JSON topic, with what its contract does not name."""


def names(topic: str) -> tuple[str, str, str]:
    """Of the valid records, of those in quarantine, and of what replays have made of them."""
    return f"{stem(topic)}_valid", f"{stem(topic)}_quarantine", f"{stem(topic)}_replayed"


def stem(topic: str) -> str:
    """The topic in the catalog's names, which have letters, digits and _ only."""
    return re.sub(r"\W", "_", topic, flags=re.ASCII)


def texts(log: Log, relation: str) -> dict[str, str]:
    """By name, the SELECTs. The valid records have the columns that a definition of the topic can name."""
    valid, refused, replayed = names(log.topic.name)
    contract = log.topic.contract
    body = [f"{_text('value')} AS {VALUE}"] if contract.format == JSON else []
    return {
        valid: log.valid_sql(relation, *body),
        refused: quarantine.quarantine_sql(relation, _texts(contract)),
        replayed: quarantine.replayed_sql(relation),
    }


def _texts(contract: Contract) -> dict[str, str]:
    """The log's columns that are text by the contract, as SQL; bytes are shown where it says nothing."""
    key = ["key"] if contract.key_format in (JSON, STRING) else []
    value = ["value"] if contract.format == JSON else []
    return {column: _text(f"l.{column}") for column in (*key, *value)}


def _text(column: str) -> str:
    """What is not UTF-8 is shown as 0x and its bytes, which begin no document."""
    text = f"CAST({column} AS string)"
    return f"CASE WHEN is_valid_utf8({text}) THEN {text} ELSE concat('0x', hex({column})) END"


def hidden_by(table: str, topic: str) -> str | None:
    """The view of the topic that a table of this name would hide; names differ by more than case."""
    return next((name for name in names(topic) if name.lower() == table.lower()), None)
