"""What a job may be asked for is validated where it enters: a range is two times, in their order."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from twinlake.base.errors import UsageError
from twinlake.server.all_jobs import KINDS
from twinlake.server.job_models import RebuildParams, VerifyParams


@pytest.mark.parametrize("params", [RebuildParams, VerifyParams])
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"from": "yesterday"}, "'yesterday' is not a time"),
        ({"to": "2026-02-30"}, "month 2 of 2026 has no day 30"),
        ({"from": "2026-01-31T12:00:00+01:00", "to": "2026-01-31T11:00:00Z"}, "is empty"),
    ],
)
def test_a_range_that_cannot_be_is_refused(
    params: type[RebuildParams | VerifyParams], asked: dict[str, str], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        params.model_validate({"table": "sales", **asked})


def test_a_range_is_kept_as_it_was_asked_for() -> None:
    asked = {"table": "sales", "from": "2026-01-31", "to": "2026-01-31T12:00:00+01:00"}
    made = VerifyParams.model_validate(asked).model_dump(by_alias=True)
    assert (made["from"], made["to"]) == ("2026-01-31", "2026-01-31T12:00:00+01:00")


@pytest.mark.parametrize("url", ["nonsense", "ftp://example.com/x", "https://", "https://example.com/x\n"])
def test_what_is_no_address_is_said_with_one_that_is_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        KINDS["webhook"].asked("webhook", {"table": "sales", "url": url})

    assert refused.value.why == "url: it is not an https:// address such as https://example.com/changes"


def test_what_is_wrong_with_several_parameters_is_said_without_a_place() -> None:
    asked = {"table": "sales", "topic": "x", "partition_by": "key"}
    with pytest.raises(UsageError) as refused:
        KINDS["changelog"].asked("changelog", asked)

    assert refused.value.why == (
        "partition_by (--partition-by) is key, and the events have none: name its columns with key (--key), "
        "or leave it out"
    )
