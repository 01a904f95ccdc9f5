"""Settings and services.json."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.project import OURS, example_of
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.config.settings import Services, Settings


def test_services_come_back_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", in_project=OURS)
    services = Services(bootstrap_servers="127.0.0.1:9092", api_token="secret")

    services.save(settings.services_file)

    assert settings.services() == services
    assert stat.S_IMODE(settings.services_file.stat().st_mode) == 0o600


def test_nothing_started_is_not_reachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="twinlake up"):
        Settings(home=tmp_path, in_project=OURS).services()


@pytest.mark.parametrize(("folder", "named"), [("a%20b", "'%'"), ("a b", "' '"), ("zürich", "'ü'")])
def test_a_state_folder_that_others_would_read_otherwise_is_refused(folder: str, named: str) -> None:
    with pytest.raises(UsageError) as refused:
        Settings.of({"TWINLAKE_HOME": f"/tmp/{folder}"})

    assert refused.value.why.startswith(f"{named} in its path means")


def test_a_home_shows_the_examples_that_its_file_names(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    assert (settings.examples, settings.sources) == ((), (OURS,))

    settings.gallery_file.write_text('["trades"]')

    assert (settings.examples, settings.sources) == (("trades",), (OURS, example_of("trades")))


@pytest.mark.parametrize("text", ["{", '"trades"', '["nothing"]', '["../.."]', "[7]"])
def test_a_list_of_examples_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    settings.gallery_file.write_text(text)

    with pytest.raises(UsageError, match="is not a list of examples") as refused:
        _ = settings.examples
    assert "twinlake gallery add" in refused.value.remedy
