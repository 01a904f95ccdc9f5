"""A field that a model of a job gains is in API, document, command and form, and is passed on."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.project import PROJECT

WITH_A_NOTE = """
import importlib, json, os, sys
from pydantic import Field
from twinlake.server import job_models, release_models

MODELS = [
    (module, one) for module in (job_models, release_models) for name, one in vars(module).items()
    if name.endswith("Params") and name != "Params" and one.__module__ == module.__name__
]
for module, one in MODELS:  # before anybody else imports them
    field = (str | None, Field(default=None, max_length=7, description="a field that is new"))
    kept = {"__module__": one.__module__, "__annotations__": {"note": field[0]}, "note": field[1]}
    setattr(module, one.__name__, type(one)(one.__name__, (one,), kept))

from typer.testing import CliRunner
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.server.client import LakeClient

class Sent(Exception):
    pass

def submit(self, kind, params, key=None, asker=None):
    raise Sent(kind, dict(params))

Settings.services = lambda self: None
LakeClient.of = classmethod(lambda cls, *asked, **more: cls("http://lake", "token"))
LakeClient.submit = submit
app = build_app()
commands = [["topic", "accept"], *([name] for name in COMMANDS)]
help = {" ".join(one): CliRunner().invoke(app, [*one, "--help"]).output for one in commands}
sent = CliRunner().invoke(app, ["rollback", "--note", "x", "--approved-by", "ada"]).exception.args

from twinlake.server.all_jobs import KINDS
from twinlake.reference.api import text
given = {"approved_by": "ada", "note": "x"}
taken = KINDS["rollback"].params.model_validate(given).model_dump(mode="json", by_alias=True)

from twinlake import airflow
dags = {name: getattr(airflow, f"{name}_dag")() for name in FORMS}
forms = {}
for name, dag in dags.items():
    note = dag.params.get_param("note")
    forms[name] = {"value": note.value, "description": note.description, **note.schema}

class Run:
    triggering_user_name = "ada"

act = dags["rollback"].get_task("roll_back").python_callable
params = {"to": None, "reason": None, "note": "x"}
act.__globals__["get_current_context"] = lambda: {"params": params, "dag_run": Run()}
asked = []
act.__globals__["run_job"] = lambda kind, given: asked.append([kind, given]) or {"tables": {}, "release": 1}
act.__globals__["announce"] = lambda *event, **facts: None
act()
print(json.dumps({"help": help, "sent": sent, "document": text(), "taken": taken, "forms": forms,
                  "asked": asked, "kinds": sorted(KINDS)}))
"""
COMMANDS = (
    "rebuild", "verify", "plan", "build", "diff", "gate", "promote", "rollback", "retire", "changelog",
    "pause", "resume", "reload", "replay", "expire", "maintain",
)  # fmt: skip
FORMS = ("backfill", "backup", "maintain", "release", "reload", "replay", "rollback")


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    code = f"COMMANDS, FORMS = {COMMANDS!r}, {FORMS!r}\n{WITH_A_NOTE}"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_new_field_is_an_option_of_every_command_that_asks_for_the_job(shown: dict[str, Any]) -> None:
    without = [name for name, text in shown["help"].items() if "--note" not in text or "is new" not in text]

    assert without == []
    assert shown["sent"] == ["rollback", {"note": "x", "approved_by": "ada"}]


def test_a_new_field_is_in_every_form_of_the_job_and_a_task_passes_it_on(shown: dict[str, Any]) -> None:
    field = {
        "value": None, "description": "a field that is new", "type": ["null", "string"], "maxLength": 7,
        "title": "Note",
    }  # fmt: skip
    assert shown["forms"] == dict.fromkeys(FORMS, field)
    assert shown["asked"] == [["rollback", {"note": "x", "approved_by": "ada"}]]


def test_a_new_field_is_taken_by_the_api_and_described_in_its_document(shown: dict[str, Any]) -> None:
    assert shown["taken"] == {"to": None, "live": None, "reason": None, "approved_by": "ada", "note": "x"}
    for kind in shown["kinds"]:
        assert f"| `{kind}` | `note` | string | a field that is new |" in shown["document"]
