"""Writes a twinlake.toml with every key, commented out, from what `sections.py` says of each.

`python -m twinlake.config.settings_example` puts it into docs/settings.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from twinlake.config.sections import SECTIONS
from twinlake.config.settings import PROJECT

DOCUMENT = PROJECT / "docs" / "settings.md"
_BEGIN, _END = "## Every key\n\n```toml\n", "```\n"

_HEAD = """\
# Twinlake's settings. This file belongs into $TWINLAKE_HOME, and need not exist: every key has a default.
# A variable TWINLAKE_<SECTION>_<KEY> goes before it. Passwords stand in files of their own (chmod 600) that
# *_file names, or in the environment: TWINLAKE_KAFKA_PASSWORD. `twinlake doctor` checks it and what it names.
"""


def example() -> str:
    """The whole file."""
    return "\n".join([_HEAD, *(line for name, kind in SECTIONS.items() for line in _section(name, kind))])


def default_of(one: Field[Any]) -> str:
    """The default as a person reads it."""
    shown = one.metadata.get("shown")
    if shown:
        return str(shown)
    return str(one.default) if isinstance(one.default, int | str) and one.default != "" else ""


def own_first(kind: type) -> list[Field[Any]]:
    """The fields, those that the class shares with others at last."""
    return sorted(fields(kind), key=lambda one: one.name not in kind.__annotations__)


def _section(name: str, kind: type, doc: str = "") -> Iterator[str]:
    inner = []
    said = doc or (kind.__doc__ or "").split(".")[0].replace("\n    ", " ")
    yield f"# {said[0].upper()}{said[1:].rstrip('.')}."
    yield f"# [{name}]"
    for one in own_first(kind):
        if "section" in one.metadata:
            inner.append(one)
        elif "kind" in one.metadata:
            default = default_of(one)
            yield f"# {one.name} = {one.metadata['example']}  # {one.metadata['doc']}" + (
                f"; default: {default}" if default else ""
            )
    yield ""
    for one in inner:
        yield from _section(f"{name}.{one.name}", one.metadata["section"], one.metadata["doc"])


def document(file: Path = DOCUMENT) -> str:
    """The documentation with the example as it is now."""
    head, _, rest = file.read_text().partition(_BEGIN)
    return head + _BEGIN + example() + _END + rest.partition(_END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(document())
