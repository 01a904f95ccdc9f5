"""What is active: each topic's contract and schemas as the lake server works with them, for every reader.

`<lake>/topics/<topic>.json`, replaced as a whole. Files in the working tree are wishes until the lake server
has opened the topic's log with them; a reader that looked there would ask for columns that the log has not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from twinlake.base.errors import NotFoundError
from twinlake.base.location import Location
from twinlake.lake.storage import store
from twinlake.topics.topic import Topic


def publish(lake: Location, topic: Topic, met: Sequence[int] = ()) -> None:
    """Tell readers of the topic; only the lake server does, before the first batch that uses it, and again
    when the log has met another schema: `met` are the ids of all so far."""
    file = _file(lake, topic.name)
    text = json.dumps({**topic.to_json(), "schemas_met": list(met)}, indent=2)
    store.replace_other(file, text)


def active_topic(lake: Location, name: str) -> Topic:
    """The topic as its log is written now; NotFoundError before the first time."""
    try:
        data = store.read_json(_file(lake, name))
        with store.reading(_file(lake, name)):
            return Topic.from_json(data)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"the lake does not tell the contract and schemas of topic {name}",
            f"{_file(lake, name)} does not exist: the lake server has not opened its log yet",
            "start the lake server, see `twinlake status`",
        ) from error


def active_topic_names(lake: Location) -> list[str]:
    """The topics whose logs a lake server has opened."""
    return sorted(name.removesuffix(".json") for name in published(lake))


def published(lake: Location) -> dict[str, int]:
    """By file, when it was replaced last: equal as long as nothing new is active."""
    files = store.tree(lake / "topics")
    return {name: file.modified_ns for name, file in files.items() if name.endswith(".json")}


def _file(lake: Location, name: str) -> Location:
    return lake / "topics" / f"{name}.json"
