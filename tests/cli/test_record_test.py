"""Where a recorded unit test goes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.project import EXAMPLES, OURS, TABLES, example_of
from twinlake.cli.record_test import project_of
from twinlake.config.settings import Settings


def test_a_case_goes_into_the_project_of_its_table_s_definition(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    settings.gallery_file.write_text(json.dumps(["parcels"]))
    (parcel,) = (table for table in EXAMPLES["parcels"] if table.name == "parcel_now")

    assert project_of(settings, parcel).root == example_of("parcels").root
    assert project_of(settings, TABLES[0]).root == OURS.root
