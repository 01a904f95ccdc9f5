"""What docs/first_project.md has people write is a sound project, and so is docs/project_files.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tests.project import PROJECT
from twinlake.cli.app import build_app
from twinlake.config.project import Project
from twinlake.releases.check import Report, check
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_COMMAND = (PROJECT / "docs" / "first_project.md").read_text()
BY_HAND = (PROJECT / "docs" / "project_files.md").read_text()


def block(text: str, language: str) -> str:
    """The first block of code in this language."""
    found = re.search(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, language
    return found[1]


def sound(report: Report) -> set[str]:
    """The tables, of which nothing is wrong."""
    assert [one.what for one in (*report.problems, *report.warnings)] == []
    return {one["name"] for one in report.tables}


def test_the_three_files_are_a_project_with_a_topic_and_a_table(tmp_path: Path, spark: SparkSession) -> None:
    for place, language in (
        ("twinlake.toml", "toml"), ("contracts/payments.yaml", "yaml"), ("jobs/tables/revenue.py", "python"),
    ):  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(block(BY_HAND, language))

    assert sound(check([Project.load(tmp_path)], lambda: spark)) == {"revenue"}


def test_the_commands_make_a_sound_project_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    commands = re.findall(r"^twinlake (new [^#\n]*?)(?: && cd (\w+))?\s*(?:#.*)?$", BY_COMMAND, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    for command, then in commands:
        assert CliRunner().invoke(build_app(), command.split()).exit_code == 0, command
        if then:
            monkeypatch.chdir(tmp_path / then)
            Path("payments.jsonl").write_text(block(BY_COMMAND, "json"))
    project = Project.load(tmp_path / "shop")
    kinds = {"pairs": ("IntervalJoin", "payments", "payments"), "newest": ("latest", "visits")}
    for name, (kind, *sources) in kinds.items():
        named = [word for source in sources for word in ("--from", source)]
        assert CliRunner().invoke(build_app(), ["new", "table", name, "--kind", kind, *named]).exit_code == 0
    assert CliRunner().invoke(build_app(), ["new", "topic", "things"]).exit_code == 0

    report = check([project], lambda: spark)

    assert [command.split()[1] for command, _ in commands] == ["project", "topic", "table"]
    assert sound(report) == {"visits_per_page", "revenue", "pairs", "newest", "kept_payments"}
    assert {one["name"] for one in report.topics} == {"visits", "payments", "things"}
    assert load_topic("payments", project).contract.unique == "event_id"
