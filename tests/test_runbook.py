"""docs/runbook.md says what the code says, by commands that there are, and a test follows each remedy."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import typer

from tests.project import PROJECT
from tests.runbook import EXCEPTED, MODULES, followed_by
from tests.test_guarantees import is_test
from twinlake.base import errors
from twinlake.cli.app import build_app

PAGE = PROJECT / "docs" / "runbook.md"
LIBRARY = PROJECT / "twinlake"
VARIES = "…"
ALSO = " · "
"""Between errors of one entry."""
RAISED = frozenset(errors._classes()) - {"ContractError", "DefinitionError"} | {"critical", "Condition"}
"""What makes an error, or what an operator reads as one; definitions and contracts are `twinlake check`'s."""
LINES = ("Look", "Do", "Lost")
COMMAND = re.compile(r"`twinlake ([a-z-][^`\n|\[]*)`")


def texts_of(node: ast.AST, named: Mapping[str, list[ast.expr]] = {}) -> list[str]:
    """The words of an expression, each of them with `…` where something varies; none where all of it does.
    `named` is what names of the module may stand for."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(str(one.value) if isinstance(one, ast.Constant) else VARIES for one in values)]
        case ast.BinOp(left=left, right=right):
            ends = texts_of(right, named) or [VARIES]
            return [f"{begin}{end}" for begin in texts_of(left, named) for end in ends]
        case ast.IfExp(body=body, orelse=orelse):
            return [*texts_of(body, named), *texts_of(orelse, named)]
        case ast.BoolOp(values=values):
            return [text for one in values for text in texts_of(one, named)]
        case ast.Name(id=name):
            return [text for one in named.get(name, []) for text in texts_of(one)]
    return []


@cache
def said_by(module: str) -> tuple[tuple[str, int], ...]:
    """What the errors of a module say, with their lines."""
    tree = ast.parse((LIBRARY / f"{module}.py").read_text())
    named: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            named.setdefault(target.id, []).append(node.value)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _raises(node)):
            given = {one.arg: one.value for one in node.keywords}
            place = 1 if name == "LostVersionError" else 0
            what = given.get("what") or (node.args[place] if len(node.args) > place else None)
            found += [(text, node.lineno) for text in (texts_of(what, named) if what else ())]
    return tuple(found)


def _raises(node: ast.Call) -> str:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return name if name in RAISED and (node.args or node.keywords) else ""


@cache
def all_said() -> frozenset[str]:
    modules = (str(file.relative_to(LIBRARY).with_suffix("")) for file in LIBRARY.rglob("*.py"))
    return frozenset(text for module in modules for text, _ in said_by(module))


def entries(page: str) -> dict[str, str]:
    """What an error says -> what the page says of it."""
    found = re.findall(r"^### (.+)\n((?:(?!^#).*\n)*)", page, re.MULTILINE)
    return dict(found)


def commands(text: str) -> Iterator[str]:
    """Those between backticks, and those of indented lines."""
    yield from re.findall(r"`twinlake ([^`]+)`", text)
    yield from re.findall(r"^    twinlake ([^#\n]+)", text, re.MULTILINE)


@cache
def command_line() -> Any:
    """Typer has a click of its own, or not: by its shape."""
    return typer.main.get_command(build_app())


def fault(line: str, *, whole: bool) -> str:
    """Why there is no such command, or no such option; `whole`: with all that it needs."""
    here = command_line()
    values: list[str] = []
    words = shlex.split(line)
    while words:
        word = words.pop(0)
        options = {name: one for one in here.params for name in (*one.opts, *one.secondary_opts)}
        within = getattr(here, "commands", {})
        if word.startswith("-"):
            name, _, value = word.partition("=")
            if name not in options and VARIES not in name:
                return f"twinlake {line}: there is no option {name}"
            if name in options and not options[name].is_flag and not value and words:
                words.pop(0)
        elif word in within:
            here = within[word]
        elif within and "take" not in within:  # `twinlake backup DIR` is `twinlake backup take DIR`
            return f"twinlake {line}: there is no command {word}"
        else:
            values.append(word)
    takes = [one for one in here.params if one.param_type_name == "argument"]
    needs = [one for one in takes if one.required]
    if getattr(here, "commands", ()):
        return ""
    if len(values) > len(takes) and VARIES not in values[-1]:
        return f"twinlake {line}: it takes no {values[-1]}"
    missing = needs[len(values) :] if whole else []
    return f"twinlake {line}: {missing[0].name} is missing" if missing else ""


def faults(page: str) -> list[str]:
    found = []
    listed = entries(page)
    for heading, of_it in listed.items():
        found += [f"no error says {what!r}" for what in heading.split(ALSO) if what not in all_said()]
        told = re.findall(r"^- (\w+): ", of_it, re.MULTILINE)
        if tuple(told) != LINES:
            found.append(f"{heading}: its lines are {told}")
    done = re.sub(r"^- Look: .*|^[A-Z].*", "", page, flags=re.MULTILINE)
    found += filter(None, (fault(line, whole=True) for line in commands(done)))
    found += filter(None, (fault(line, whole=False) for line in commands(page)))
    on_the_page = {what for heading in listed for what in heading.split(ALSO)}
    for module in MODULES:
        for text, line in said_by(module):
            if not (text in on_the_page or text in EXCEPTED.get(module, {})):
                found.append(f"twinlake/{module}.py:{line}: {text!r} is not on the page")
    return found


def test_each_entry_is_an_error_of_the_code_and_each_command_is_there() -> None:
    assert faults(PAGE.read_text()) == []


def test_nothing_is_excepted_that_no_error_says() -> None:
    stale = [
        f"{module}: {text}"
        for module, texts in EXCEPTED.items()
        for text, reason in texts.items()
        if text not in {one for one, _ in said_by(module)} or not reason
    ]
    assert stale == [] and set(EXCEPTED) <= set(MODULES)


def test_a_test_follows_each_remedy() -> None:
    tests = followed_by()

    assert list(tests) == list(entries(PAGE.read_text()))
    assert [node for nodes in tests.values() for node in nodes if not is_test(node)] == []
    assert [what for what, nodes in tests.items() if not nodes] == []


def test_every_command_that_an_error_names_is_there() -> None:
    """Of the whole library, whoever meets it."""
    wrong = [
        f"{file.name}:{node.lineno}: {said}"
        for file in LIBRARY.rglob("*.py")
        if "`twinlake " in (source := file.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for text in texts_of(node)
        for line in COMMAND.findall(text)
        if (said := fault(line, whole=False))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("there", "planted", "found"),
    [
        ("### the supervisor has ended", "### the supervisor is over", "no error says"),
        ("`twinlake topic accept TOPIC`.", "`twinlake topic admit TOPIC`.", "there is no"),
        ("`twinlake topic accept TOPIC`.", "`twinlake topic accept`.", "is missing"),
        ("`twinlake resume TOPIC --topic`,", "`twinlake resume TOPIC --subject`,", "no option --subject"),
        ("- Lost: those records.", "- Gone: those records.", "its lines are"),
        ("### … is not empty", "#### … is not empty", "is not on the page"),
    ],
)
def test_a_page_that_says_something_else_than_the_code_is_found(there: str, planted: str, found: str) -> None:
    page = PAGE.read_text()
    assert there in page

    assert any(found in one for one in faults(page.replace(there, planted, 1)))
