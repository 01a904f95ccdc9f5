"""What a contract says for people: what a topic or table is for, what a row is, what each column means.

And how each column is classified, by which people see it masked or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, kw_only=True)
class Words:
    """Empty where it says nothing."""

    purpose: str = ""
    row: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    """By column its `classification`."""


NONE = Words()


def contract_words(file: Path) -> Words:
    """Those of a contract's file; none of one that is not there, or cannot be read: who loads it says why."""
    try:
        return _words(file.read_text())
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return NONE


@lru_cache(maxsize=256)
def _words(text: str) -> Words:
    document: dict[str, Any] = yaml.safe_load(text)
    (described,) = document.get("schema") or [{}]
    properties = described.get("properties") or ()
    columns, classes = (
        {str(one["name"]): str(one[said]) for one in properties if one.get(said)}
        for said in ("description", "classification")
    )
    purpose = (document.get("description") or {}).get("purpose") or ""
    return Words(
        purpose=str(purpose), row=str(described.get("dataGranularityDescription") or ""), columns=columns,
        classes=classes,
    )  # fmt: skip
