"""A definition's numbers are numbers: in JSON anybody may write `true`, `"1"` or 1.0 for them."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.kinds.measures.all import from_json

TYPES = {"x": "string", "n": "bigint"}


@pytest.mark.parametrize("kind", ["top_k", "collect_set"])
@pytest.mark.parametrize("wrong", [True, 1.0, "1", 0, -1, 2**31, 10**30, None, [1], float("nan")])
def test_how_many_is_a_whole_number(kind: str, wrong: Any) -> None:
    why = from_json({"kind": kind, "of": "x", "most": wrong}).refuses(TYPES)

    assert why is not None and why.startswith(
        f"most is {(tuple(wrong) if isinstance(wrong, list) else wrong)!r}"
    )
    assert from_json({"kind": kind, "of": "x", "most": 1}).refuses(TYPES) is None


@pytest.mark.parametrize("wrong", [True, "0.5", 1.5, -0.5, None, float("nan"), [0.5, True], [0.5, "1"]])
def test_a_quantile_is_a_number_from_0_to_1(wrong: Any) -> None:
    why = from_json({"kind": "quantile", "of": "n", "q": wrong}).refuses(TYPES)

    assert why is not None and why.startswith("q is ")
    assert from_json({"kind": "quantile", "of": "n", "q": [0, 0.5, 1]}).refuses(TYPES) is None
