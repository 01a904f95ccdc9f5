"""What the oracle takes for a change; `tests/ingest/test_change_data.py` asks the platform the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.envelopes import as_json, properties
from tests.ingest.change_cases import ALIKE, REFUSED, SOUND
from tests.oracle.gallery.envelopes import counts, identity
from tests.oracle.gallery.json_value import NoEventError, event

PLAIN = {name: pair for name, pair in ALIKE.items() if name != "wrapped"}
"""The gallery's envelopes are not wrapped."""
TIMELY = {name: value for name, value in REFUSED.items() if not name.endswith(":source.ts_ms")}
"""Times are asked elsewhere."""


def _read(value: dict[str, Any]) -> dict[str, Any]:
    return event(as_json(value), properties("postgresql"))


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_envelope_counts(name: str) -> None:
    assert counts(_read(SOUND[name]))


@pytest.mark.parametrize("name", TIMELY)
def test_one_that_is_no_change_does_not(name: str) -> None:
    try:
        read = _read(TIMELY[name])
    except NoEventError:
        return
    assert not counts(read)


@pytest.mark.parametrize("name", PLAIN)
def test_only_a_redelivery_has_the_identity_of_a_change(name: str) -> None:
    first, second, same = PLAIN[name]

    assert (identity(_read(first), b"{}") == identity(_read(second), b"{}")) is same
