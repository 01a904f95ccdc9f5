"""What is in force: each topic's contract and schemas as the lake server works with them, for every reader.

`<lake>/topics/<topic>.json`, replaced as a whole. Files in the working tree are wishes until the lake server
has opened the topic's log with them; a reader that looked there would ask for columns that the log has not.
"""

from __future__ import annotations

import json
from pathlib import Path

from jobs.errors import NotFoundError
from jobs.files import replace_file
from jobs.topics.topic import Topic


def publish(lake: Path, topic: Topic) -> None:
    """Tell readers of the topic; only the lake server does, before the first batch that uses it."""
    file, text = _file(lake, topic.name), json.dumps(topic.to_json(), indent=2)
    if not file.exists() or file.read_text() != text:
        replace_file(file, text)


def topic_in_force(lake: Path, name: str) -> Topic:
    """The topic as its log is written now; NotFoundError before the first time."""
    try:
        text = _file(lake, name).read_text()
    except FileNotFoundError as error:
        raise NotFoundError(
            f"the lake does not tell the contract and schemas of topic {name}",
            f"{_file(lake, name)} does not exist: the lake server has not opened its log yet",
            "start the lake server, see `twinlake status`",
        ) from error
    return Topic.from_json(json.loads(text))


def published(lake: Path) -> dict[str, int]:
    """By file, when it was replaced last: equal as long as nothing new is in force."""
    return {file.name: file.stat().st_mtime_ns for file in (lake / "topics").glob("*.json")}


def _file(lake: Path, name: str) -> Path:
    return lake / "topics" / f"{name}.json"
