"""What `make lint` refuses: words that the product and its docs once had, and names that are gone.

`python -m tests.words` prints each place with the plain word instead; the glossary is in docs/concepts.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.project import PROJECT

PROSE = {
    "told": "says, reports, data", "anew": "again, from scratch", "mend": "fix", "mends": "fixes",
    "mended": "fixed, corrected", "mending": "fixing", "fare otherwise": "get a different verdict",
    "fares otherwise": "gets a different verdict", "of one's own": "external, your own",
    "lane": "lock", "lanes": "locks", "coordinate": "record id", "coordinates": "record ids",
    "in force": "active", "for want of": "because there is no", "judged again": "validated again",
    "kept plan": "prepared plan", "kept plans": "prepared plans", "parted at": "split on",
}  # fmt: skip
"""A word -> the plain one, wherever it stands."""
NAMES = {
    "Ear": "ErrorCollector", "KeptPlan": "PreparedPlan", "Look": "Scan", "ThisThread": "InlineTask",
    "Turns": "QueryQueue", "_distrust": "_untrusted_certificate", "_stranger": "_authentication_failed",
    "Moment": "ViewClock", "culprit": "failing_record", "isKeeper": "isOwnerSession",
    "is_given": "is_external", "kept_plan": "prepared_plan", "lookOnAndOn": "watch",
    "refuse_unfit": "check_store", "telling_of_a_full_disk": "raising_disk_full",
    r"address\.silence": "connection_error", r"def doubts": "type_errors", r"def risen": "advance_watermark",
    r"ingest/look": "scan", r"kinds[./]behind": "lineage", r"kinds[./]defined": "loader",
    r"kinds[./]written": "load_in_subprocess", r"parts[./]lock": "broker_security",
    r"passwords\.fits": "verify", r"rights\.admit": "apply_acls", r"version\.fits": "is_compatible",
    r"ingest[./]nearby": "replay_dedup", r"[./](?:awaited|hold)\.py": "wait_progress, pause",
}  # fmt: skip
"""A name of before -> the plain one, in code; a sentence may begin with Look."""
CODE, TEXT = (".py", ".java"), (".md", ".yaml", ".yml", ".toml", ".txt", ".sh", ".html")
SEARCHED = ("twinlake", "jobs", "dags", "infra", "benchmarks", "docs", "README.md", "CONTRIBUTING.md")
"""CHANGELOG.md is not among them: it names what was renamed."""


def _any_of(words: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)({'|'.join(words)})(?!\w)(?! (?:at|away|again)\b)")


def _plain(found: str, words: Mapping[str, str]) -> str:
    return next(plain for word, plain in words.items() if re.fullmatch(word, found))


def refused(text: str, is_code: bool) -> Iterator[tuple[int, str, str]]:
    """Line, what is written there, and the plain word."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in _any_of(PROSE).findall(line.lower()):
            yield number, found, _plain(found, PROSE)
        for found in _any_of(NAMES).findall(line) if is_code else ():
            yield number, found, _plain(found, NAMES)


def files(root: Path) -> Iterator[Path]:
    """What git knows, or would, of the product and its docs."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *SEARCHED],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    found = (root / name for name in listed)
    return (file for file in found if file.suffix in (*CODE, *TEXT) and file.is_file())


def main() -> int:
    places = [
        f"{file.relative_to(PROJECT)}:{number}: {word!r} is called {plain} here"
        for file in files(PROJECT)
        for number, word, plain in refused(file.read_text(), file.suffix in CODE)
    ]
    print("\n".join(places) or "the words are plain")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
