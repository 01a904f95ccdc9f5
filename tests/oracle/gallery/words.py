"""What the gallery's tables of words and log lines must show."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime

from tests.oracle.gallery.records import Record, Rows

FIELDS = ("event_id", "service", "message", "logged_at")


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    times = Counter(
        word for sentence in valid["sentences"] for word in re.findall(r"[^\W\d_]+", sentence["text"].lower())
    )
    lines = Counter(
        word for line in valid["log_lines"] for word in re.findall(r"[^\W\d_]+", line["message"].lower())
    )
    return {
        "line_words": {(word,): {"times": count} for word, count in lines.items()},
        "all_words": {(word,): {"times": count} for word, count in (times + lines).items()},
        "word_count": {(word,): {"times": count} for word, count in times.items()},
        "error_lines": {
            (0, line["partition"], line["offset"]): {name: line[name] for name in FIELDS}
            for line in valid["log_lines"]
            if line["level"] == "ERROR"
        },
    }
