"""The form of a DAG: a parameter for each field of a job's model, and what a run was given of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import Param

from twinlake.server.job_fields import Field, fields
from twinlake.server.job_models import Params

SAID = {"type", "maxLength", "items", "minItems", "enum", "pattern"}
"""What a form takes over from JSON Schema. An empty field is one that was left out: only what has to be
filled in has a least length."""
NOTHING: Mapping[str, Mapping[str, Any]] = {}


def form(
    model: type[Params],
    more: Mapping[str, Mapping[str, Any]] = NOTHING,
    needed: Collection[str] = (),
    without: Collection[str] = (),
) -> dict[str, Param]:
    """The parameters by name, but for those `without`; those `needed` have to be filled in.

    `more` is what the form says besides, or instead; `{about}` in a description is what the model says.
    With a `type` it is all of the schema.
    """
    return {
        field.name: _param(field, more.get(field.name, {}), field.required or field.name in needed)
        for field in fields(model)
        if field.name not in without
    }


def given(model: type[Params], params: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """What to ask for: the fields that were filled in, as they were. A form shows no object as {}."""
    names = [field.name for field in fields(model) if field.name not in without]
    return {name: params[name] for name in names if params.get(name) not in (None, {})}


def _param(field: Field, more: Mapping[str, Any], is_needed: bool) -> Param:
    schema: dict[str, Any] = {} if "type" in more else _schema(field, is_needed)
    schema |= {"title": field.title, **more}
    schema["description"] = schema.get("description", "{about}").replace("{about}", field.described)
    if is_needed:
        return Param(**schema)
    return Param(False if field.type == "boolean" else None, **schema)


def _schema(field: Field, is_needed: bool) -> dict[str, Any]:
    schema = {name: value for name, value in field.schema.items() if name in SAID}
    if is_needed:
        return schema | {name: field.schema[name] for name in ("minLength",) if name in field.schema}
    if field.type != "boolean":
        schema["type"] = ["null", field.type]
    if "minimum" in field.schema:  # the form replaces what is typed by a `minimum`, silently
        schema["exclusiveMinimum"] = field.schema["minimum"] - 1
    return schema
