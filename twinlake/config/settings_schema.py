"""Makes the JSON Schema of `twinlake.toml`, for editors, from what the sections say of each key.

An editor sees one key at a time: whether the files that it names are there, and what goes with what,
`twinlake doctor` says.
"""

from __future__ import annotations

from typing import Any

from twinlake.config.keys import Key, Section
from twinlake.config.sections import SECTIONS

Schema = dict[str, Any]


def settings_schema() -> Schema:
    """Draft 7, which editors of TOML know."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of Twinlake",
        **_table({name: _section(one) for name, one in SECTIONS.items()}),
    }


def _section(section: Section) -> Schema:
    """A secret is not a key: it is in a file of its own."""
    properties = {
        name: _section(one) if isinstance(one, Section) else _key(section, name, one)
        for name, one in section.keys.items()
        if isinstance(one, Section) or not one.is_secret
    }
    return {"description": section.doc, **_table(properties)}


def _table(properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _key(section: Section, name: str, key: Key) -> Schema:
    """Its default is what the model holds, or in words where that is made at the start."""
    default = getattr(section.kind, name, None)
    said = {"default": default} if isinstance(default, str | int) and default != "" else {}
    doc = f"{key.doc}; default: {key.shown}" if key.shown else key.doc
    return {"description": f"{doc}; for example {key.example}", **said, **key.form}
