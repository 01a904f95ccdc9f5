"""The folder that `twinlake dags` writes is all that an Airflow needs, and to parse it takes no network."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.dags.airflow_alone import airflow_alone
from tests.project import OURS, PROJECT
from twinlake.cli import dags
from twinlake.config.sections import Limits

DAGS = {"backfill", "backup", "batch", "maintain", "release", "reload", "replay", "rollback"}
PARSE = """
import importlib.util, json, pathlib, socket, sys

def refuse(*given):
    raise AssertionError("a network, or a connection, is asked for at parse time")

socket.socket.connect = refuse
from airflow.sdk import BaseHook
BaseHook.get_connection = refuse
from airflow.dag_processing.dagbag import BundleDagBag
bag = BundleDagBag(dag_folder=sys.argv[1], bundle_path=pathlib.Path(sys.argv[1]), bundle_name="twinlake")
names = ("pyspark", "jobs", "confluent_kafka")
found = {name: importlib.util.find_spec(name) is not None for name in names}
from twinlake.server import client
runs = {dag.dag_id: dag.dagrun_timeout.total_seconds() for dag in bag.dags.values() if dag.dagrun_timeout}
print(json.dumps({"runs": runs, "dags": sorted(bag.dags), "errors": bag.import_errors, "found": found,
                  "path": sys.path, "client": client.__file__}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a Python that has Airflow alone finds in the folder; `folder` is where that is."""
    home = tmp_path_factory.mktemp("alone")
    folder = home / "bundle"
    dags.write(dags.dag_files(OURS.dags), folder, prefix="shop_", limits=Limits(airflow_run_hours=3))
    python = airflow_alone(home / "venv", more=())
    done = subprocess.run(
        [str(python), "-c", PARSE, str(folder)], cwd=home, capture_output=True, text=True, timeout=120,
        env={"AIRFLOW_HOME": str(home / "airflow"), "HOME": str(home), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return {**json.loads(done.stdout.splitlines()[-1]), "folder": str(folder)}


def test_the_limits_are_those_of_who_has_written_the_folder(parsed: dict[str, object]) -> None:
    limited = ("backup", "batch", "maintain", "reload", "replay", "rollback")
    assert parsed["runs"] == {f"shop_{dag}": 3 * 3600 for dag in limited}


def test_all_dags_are_found_without_the_project_and_without_spark(parsed: dict[str, object]) -> None:
    assert parsed["errors"] == {}
    assert set(parsed["dags"]) == {f"shop_{dag}" for dag in DAGS}  # type: ignore[attr-defined]
    assert parsed["found"] == {"pyspark": False, "jobs": False, "confluent_kafka": False}
    assert not [place for place in parsed["path"] if Path(place) in (PROJECT, PROJECT / "dags")]  # type: ignore[attr-defined]
    assert parsed["client"] == f"{parsed['folder']}/twinlake/server/client.py"


@pytest.mark.parametrize(
    ("environ", "views"),
    [
        ({"TWINLAKE_CONSOLE_URL": "https://console.example/"}, ["https://console.example/"]),
        ({"TWINLAKE_CONSOLE_URL": "javascript:alert(1)"}, []),
        ({}, []),
    ],
)
def test_the_plugin_leads_to_the_console_where_that_is_said(
    parsed: dict[str, object], environ: dict[str, str], views: list[str], tmp_path: Path
) -> None:
    """Airflow's own manager of plugins reads it, in a Python that has Airflow alone."""
    bundle = Path(str(parsed["folder"]))
    code = (
        "import json; from airflow import plugins_manager; "
        "(found, errors) = plugins_manager._get_plugins(); "
        "ours = [one for one in found if one.name == 'twinlake_console']; "
        "print(json.dumps([[one['href'] for one in ours[0].external_views], len(ours), errors]))"
    )
    done = subprocess.run(
        [str(bundle.parent / "venv" / "bin" / "python"), "-c", code],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__PLUGINS_FOLDER": str(bundle / "plugins"),
             "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **environ},
    )  # fmt: skip

    assert json.loads(done.stdout.splitlines()[-1]) == [views, 1, {}], done.stderr[-2000:]
    assert "plugins/" in (bundle / ".airflowignore").read_text().splitlines()


def test_the_dag_that_the_docs_show_is_scheduled_by_the_asset_of_a_table(tmp_path: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    from twinlake.airflow.assets import asset_of

    (shown,) = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "airflow.md").read_text(), re.DOTALL)
    (tmp_path / "shown.py").write_text(shown)

    bag = DagBag(dag_folder=str(tmp_path))

    assert bag.import_errors == {}
    assert bag.dags["after_sales"].timetable.asset_condition == asset_of("sales_per_region")
