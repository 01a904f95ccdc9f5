"""Verdicts and reasons are a published list."""

from __future__ import annotations

import pytest

from twinlake.topics.verdict import REASONS, UNDECODABLE, reason


def test_only_published_reasons_can_be_given() -> None:
    assert reason("empty", "region") == "empty:region"
    with pytest.raises(ValueError, match="unpublished"):
        reason("odd")


def test_every_reason_is_explained() -> None:
    assert all(
        words and set(code) <= set("abcdefghijklmnopqrstuvwxyz_0123456789") for code, words in REASONS.items()
    )
    assert set(UNDECODABLE) < set(REASONS)
