"""Files of the console's Query page, from a real SQL server: all rows, as CSV, Parquet and Arrow."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.reading.conftest import PASSWORD, SqlServer
from twinlake.base.errors import UsageError
from twinlake.config.settings import Settings
from twinlake.config.users import User
from twinlake.console.downloads import FORMS, written
from twinlake.console.sessions import Session
from twinlake.console.statement import Asked

SESSION = Session(user=User(name="analyst", role="analyst", line=""), password=PASSWORD, began=0, used=0)
ROWS = 30_000


@pytest.fixture
def reader(sql: SqlServer, tmp_path: Path) -> Settings:
    sql.services.save(tmp_path / "services.json")
    return Settings(home=tmp_path)


def file(reader: Settings, ending: str, sql: str) -> bytes:
    with written(reader, SESSION, Asked(sql=sql), FORMS[ending]) as made:
        return made.read()


def test_each_form_has_all_rows(reader: Settings) -> None:
    asked = f"SELECT id, CAST(id AS DECIMAL(9, 2)) AS amount, array(id) AS ids FROM range({ROWS}) ORDER BY id"
    began = time.monotonic()

    as_csv = list(csv.reader(io.StringIO(file(reader, "csv", asked).decode())))
    as_parquet = parquet.read_table(io.BytesIO(file(reader, "parquet", asked)))
    as_arrow = pa.ipc.open_file(io.BytesIO(file(reader, "arrow", asked))).read_all()

    assert as_csv[0] == ["id", "amount", "ids"] and len(as_csv) == ROWS + 1
    assert as_csv[-1][:2] == [str(ROWS - 1), f"{ROWS - 1}.00"]
    for table in (as_parquet, as_arrow):
        assert table.num_rows == ROWS and table["ids"].to_pylist()[-1] == [ROWS - 1]
        assert table.schema.field("amount").type == pa.decimal128(9, 2)
    assert time.monotonic() - began < 60, "each is asked for once"


@pytest.mark.parametrize("ending", FORMS)
def test_what_is_wrong_is_said_at_once(reader: Settings, ending: str) -> None:
    with pytest.raises(UsageError, match="TABLE_OR_VIEW_NOT_FOUND"):
        file(reader, ending, "SELECT * FROM nowhere")
