"""The alert rules and the dashboard: of metrics that there are, and evaluated by Prometheus' own tool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import PROJECT
from twinlake.metrics import catalogue

RULES = PROJECT / "infra" / "prometheus" / "twinlake.rules.yml"
DASHBOARD = PROJECT / "infra" / "grafana" / "twinlake.json"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
GIB = 1 << 30
WELL: dict[str, str] = {
    'up{job="twinlake",instance="lake"}': "1x60",
    'twinlake_service_ready{service="sql"}': "1x60",
    'twinlake_service_restarts_total{service="sql"}': "0x60",
    "twinlake_ready": "1x60",
    'twinlake_topic_error{topic="orders"}': "0x60",
    'twinlake_table_freshness_seconds{table="sales"}': "0x60",
    'twinlake_topic_lag_records{topic="orders"}': "5x60",
    'twinlake_topic_batch{topic="orders"}': "1+1x60",
    'twinlake_topic_ingested_timestamp_seconds{topic="orders"}': "0+60x60",
    'twinlake_version_stalled{table="sales",version="v"}': "0x60",
    'twinlake_version_live{table="sales",version="v"}': "1x60",
    'twinlake_version_paused{table="sales",version="v"}': "0x60",
    'twinlake_version_stalled{table="sales",version="before"}': "1x60",
    'twinlake_version_live{table="sales",version="before"}': "0x60",
    'twinlake_version_paused{table="sales",version="before"}': "0x60",
    'twinlake_output_error{output="published",table="sales"}': "0x60",
    'twinlake_certificate_verdict{table="sales",verdict="differs"}': "0x60",
    'twinlake_certificate_timestamp_seconds{table="sales"}': "0+60x60",
    'twinlake_witness_verdict{table="sales",verdict="differs"}': "0x60",
    'twinlake_topic_witness_verdict{topic="orders",verdict="differs"}': "0x60",
    "twinlake_backup_timestamp_seconds": "0+60x60",
    "twinlake_backup_failed": "0x60",
    "twinlake_damaged_files": "0x60",
    'twinlake_disk_free_bytes{folder="data"}': f"{50 * GIB}x60",
    'twinlake_disk_size_bytes{folder="data"}': f"{100 * GIB}x60",
    'twinlake_topic_records{topic="orders",verdict="valid",instance="lake"}': "0+960x60",
    'twinlake_topic_records{topic="orders",verdict="invalid",instance="lake"}': "0+40x60",
    "twinlake_follow_error": "0x60",
}
"""Series of an hour, a sample a minute, as promtool writes them; everything is well."""
DAYS = 90_000 * 60
WRONG: dict[str, dict[str, str]] = {
    "TwinlakeDown": {'up{job="twinlake",instance="lake"}': "0x60"},
    "TwinlakeServiceDown": {'twinlake_service_ready{service="sql"}': "0x60"},
    "TwinlakeRestarts": {'twinlake_service_restarts_total{service="sql"}': "0+1x60"},
    "TwinlakeNotReady": {"twinlake_ready": "0x60"},
    "TwinlakeTopicStopped": {'twinlake_topic_error{topic="orders"}': "1x60"},
    "TwinlakeTableLate": {'twinlake_table_freshness_seconds{table="sales"}': "301x60"},
    "TwinlakeTopicNotRead": {'twinlake_topic_batch{topic="orders"}': "7x60"},
    "TwinlakeTopicQuiet": {'twinlake_topic_ingested_timestamp_seconds{topic="orders"}': f"-{DAYS}x60"},
    "TwinlakeStalled": {'twinlake_output_error{output="published",table="sales"}': "1x60"},
    "TwinlakeUnequal": {'twinlake_topic_witness_verdict{topic="orders",verdict="differs"}': "1x60"},
    "TwinlakeCertificateOld": {'twinlake_certificate_timestamp_seconds{table="sales"}': f"-{DAYS}x60"},
    "TwinlakeBackupOld": {"twinlake_backup_timestamp_seconds": f"-{2 * DAYS}x60"},
    "TwinlakeBackupFailed": {"twinlake_backup_failed": "1x60"},
    "TwinlakeDamaged": {"twinlake_damaged_files": "1x60"},
    "TwinlakeDisk": {'twinlake_disk_free_bytes{folder="data"}': f"{4 * GIB}x60"},
    "TwinlakeQuarantine": {
        'twinlake_topic_records{topic="orders",verdict="invalid",instance="lake"}': "0+100x60"
    },
    "TwinlakeReadersBehind": {"twinlake_follow_error": "1x60"},
}
"""By alert, the series with which it fires."""


def rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    return found


def known() -> set[str]:
    """Every name that a scrape may have."""
    names = {one.name for one in catalogue.METRICS}
    return names | {f"{name}_{ending}" for name in names for ending in ("bucket", "count", "sum")}


def named(text: str) -> set[str]:
    return set(re.findall(r"\btwinlake_\w+", text))


def test_rules_and_dashboard_name_metrics_that_there_are() -> None:
    board = json.loads(DASHBOARD.read_text())
    shown = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    asked = [one["expr"] for one in rules()]

    assert len(shown) >= 30 and len(asked) == len(WRONG)
    assert named(" ".join(asked + shown)) - known() == set()


def test_every_rule_leads_to_a_section_that_there_is() -> None:
    lines = (PROJECT / "docs" / "alarms.md").read_text().splitlines()
    sections = {f"docs/alarms.md#alarm-{line[11:]}" for line in lines if line.startswith("### Alarm: ")}
    assert {one["annotations"]["runbook"] for one in rules()} <= sections
    assert {one["labels"]["severity"] for one in rules()} <= {"critical", "warning"}


@needs_promtool
def test_promtool_finds_the_rules_right() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_each_alert_fires_by_its_series_alone_and_none_where_all_is_well(tmp_path: Path) -> None:
    """With 4 % of the records refused, a lag that moves, and a version stalled that no reader sees nothing
    fires."""
    cases = []
    for name, wrong in {"": {}, **WRONG}.items():
        series = [{"series": one, "values": values} for one, values in {**WELL, **wrong}.items()]
        cases.append({
            "interval": "1m", "name": name or "well", "input_series": series,
            "promql_expr_test": [{
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "30m",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1}] if name else [],
            }],
        })  # fmt: skip
    file = tmp_path / "alerts.test.yml"
    file.write_text(yaml.safe_dump({
        "rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases,
    }))  # fmt: skip
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_has_its_series() -> None:
    assert {one["alert"] for one in rules()} == set(WRONG)
    assert {one for wrong in WRONG.values() for one in wrong} <= set(WELL)
