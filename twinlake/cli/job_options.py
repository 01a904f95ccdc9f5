"""The options of a command that asks for a job: one for each field of the job's model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from inspect import Parameter, Signature, getdoc, signature
from typing import Annotated, Any, get_type_hints

import typer

from twinlake.cli.options import whole
from twinlake.server.job_fields import Field, fields
from twinlake.server.job_models import Params

Asked = dict[str, Any]
"""What was given of a job's parameters, by their names in a request."""
Command = Callable[..., None]
_ASKED = "asked"


def asking(
    model: type[Params],
    arguments: Collection[str] = (),
    without: Collection[str] = (),
    **others: type[Params],
) -> Callable[[Command], Command]:
    """A command with an option for each field of the model, where it has the parameter `asked`.

    It is handed as `asked` what was given of them. A field that is a parameter of the command's own, of the
    same name, is handed over as that; `{about}` in its help is what the model says. `arguments` are no
    options, and what is `without` one the command fills in itself. Its help is the model's, unless it has
    a docstring. `others` are models of which parameters of other names are handed the same, but for fields
    that a model before it has.
    """
    models = {_ASKED: model, **others}

    def decorate(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        of_its_own = signature(command).parameters
        about = {each.attribute: each.described for each in fields(model)}
        left, taken = dict[str, list[Field]](), {*of_its_own}
        for name, of in models.items():
            left[name] = [
                one for one in fields(of) if one.attribute not in taken and one.name not in without
            ]
            taken |= {one.attribute for one in left[name]}
        parameters: list[Parameter] = []
        for name, one in of_its_own.items():
            if name in models:
                parameters += [_parameter(each, each.name in arguments) for each in left[name]]
            else:
                parameters.append(one.replace(annotation=_explained(hints[name], about.get(name, ""))))

        def run(**given: Any) -> None:
            asked = {
                name: _given({each.name: given.pop(each.attribute) for each in listed})
                for name, listed in left.items()
            }
            command(**asked, **given)

        run.__doc__ = command.__doc__ or getdoc(model)
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _given(values: Asked) -> Asked:
    return {name: one for name, one in values.items() if one is not None and one is not False}  # 0 was given


def _parameter(field: Field, is_argument: bool) -> Parameter:
    more: dict[str, Any] = {"help": field.described}
    shape: Any = {"boolean": bool, "integer": int, "array": list[str]}.get(field.type, str)
    if field.type == "integer":
        more |= {"parser": whole(field.schema["minimum"], field.schema.get("maximum")), "metavar": "NUMBER"}
    flag = f"--{field.name.replace('_', '-')}"
    shown = typer.Argument(**more) if is_argument else typer.Option(flag, **more)
    default = Parameter.empty if field.required else False if shape is bool else None
    annotation: Any = Annotated[shape | None if default is None else shape, shown]
    return Parameter(field.attribute, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _explained(hint: Any, about: str) -> Any:
    """The type of a parameter, with what the model says in its help."""
    (shown,) = hint.__metadata__
    explained = copy(shown)
    explained.help = shown.help.replace("{about}", about)
    return Annotated[hint.__origin__, explained]
