"""The library speaks plain English: names of before the plain ones do not come back."""

from __future__ import annotations

import re

from twinlake.config.settings import PROJECT

OLD = {
    "Ear": "ErrorCollector", "KeptPlan": "PreparedPlan", "Look": "Scan", "ThisThread": "InlineTask",
    "Turns": "QueryQueue", "_distrust": "_untrusted_certificate", "_stranger": "_authentication_failed",
    "is_given": "is_external", "kept_plan": "prepared_plan", "lookOnAndOn": "watch",
    "refuse_unfit": "check_store", "telling_of_a_full_disk": "raising_disk_full",
}  # fmt: skip
"""A name of before -> the plain one."""
WORDS = re.compile(rf"\b({'|'.join(OLD)})\b(?! (at|away|again)\b)")
"""As a name: a sentence may begin with Look."""


def test_no_old_name_comes_back() -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{number}: {name} is called {OLD[name]}"
        for folder in ("twinlake", "jobs", "dags")
        for path in sorted((PROJECT / folder).rglob("*"))
        if path.suffix in (".py", ".java")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for name, _ in WORDS.findall(line)
    ]

    assert found == []
