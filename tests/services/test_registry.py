"""The schema registry that `twinlake up` starts, as clients of Confluent use it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.apicurio import Apicurio


@pytest.mark.faults
def test_what_it_does_not_have_is_answered_however_early_it_is_asked_for(tmp_path: Path) -> None:
    """Without the probe's own such request three of eight starts never answered."""
    for start in range(8):
        registry = Apicurio(tmp_path / str(start)).start()
        try:
            with httpx.Client(timeout=10, trust_env=False) as client:
                subject = f"{registry.url}/subjects/a-value/versions"
                client.post(subject, json={"schema": '"string"'}).raise_for_status()

                answer = client.get(f"{registry.url}/associations/resources/-/a")
        finally:
            registry.stop()

        assert answer.status_code == 404
