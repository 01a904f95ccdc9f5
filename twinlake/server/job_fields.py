"""The fields of a job's model as whatever shows them needs them: documents, options of commands, forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from twinlake.server.job_models import Params


@dataclass(frozen=True, kw_only=True)
class Field:
    """`name` is that in a request, `attribute` that of the model. `schema` is JSON Schema, without null."""

    name: str
    attribute: str
    title: str
    description: str
    required: bool
    default: Any
    schema: dict[str, Any]

    @property
    def type(self) -> str:
        """JSON's."""
        return str(self.schema["type"])

    @property
    def described(self) -> str:
        """With the value that stands where none is given, unless that is nothing."""
        if self.default is None or self.default is False or self.default == []:
            return self.description
        return f"{self.description}; {self.default} unless given"


@cache
def fields(model: type[Params]) -> tuple[Field, ...]:
    """In the model's order."""
    shape = model.model_json_schema(by_alias=True)
    attributes = {each.alias or name: name for name, each in model.model_fields.items()}
    return tuple(
        Field(
            name=name,
            attribute=attributes[name],
            title=one["title"],
            description=one.get("description", ""),
            required=name in shape.get("required", ()),
            default=one.get("default"),
            schema=_without_null(one),
        )
        for name, one in shape["properties"].items()
    )


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" not in schema:
        return schema
    (one,) = (each for each in schema["anyOf"] if each.get("type") != "null")
    return dict(one)
