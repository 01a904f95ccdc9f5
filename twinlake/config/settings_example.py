"""Writes a twinlake.toml with every key, commented out, from what the sections say of each.

`python -m twinlake.reference` puts it into docs/settings.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinlake.config.keys import Key, Section
from twinlake.config.sections import SECTIONS

_BEGIN, _END = "## Every key\n\n```toml\n", "```\n"
_HEAD = """\
# Twinlake's settings. This file belongs in $TWINLAKE_HOME, and need not exist: every key has a default.
# A variable TWINLAKE_<SECTION>_<KEY> goes before it. Passwords stand in files of their own (chmod 600) that
# *_file names, or in the environment: TWINLAKE_KAFKA_PASSWORD. `twinlake doctor` checks it and what it names.
"""


def example() -> str:
    """The whole file."""
    return "\n".join([_HEAD, *(line for name, one in SECTIONS.items() for line in _section(name, one))])


def _section(name: str, section: Section) -> Iterator[str]:
    yield f"# {section.doc[0].upper()}{section.doc[1:]}."
    yield f"# [{name}]"
    for key, one in section.keys.items():
        if isinstance(one, Key) and not one.is_secret:
            default = one.shown or getattr(section.kind, key, None)
            is_said = isinstance(default, int | str) and default != ""
            yield f"# {key} = {one.example}  # {one.doc}" + (f"; default: {default}" if is_said else "")
    yield ""
    for key, one in section.keys.items():
        if isinstance(one, Section):
            yield from _section(f"{name}.{key}", one)


def in_page(page: str) -> str:
    """A page of documentation with the example as it is now."""
    head, _, rest = page.partition(_BEGIN)
    return head + _BEGIN + example() + _END + rest.partition(_END)[2]
