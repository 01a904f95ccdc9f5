"""What the documentation writes is there: commands with their options, settings, definitions, contracts."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from markdown_it import MarkdownIt

import twinlake
from tests.project import PROJECT
from twinlake.cli.app import build_app
from twinlake.config import settings_file
from twinlake.kinds.sql_form.reading import definition
from twinlake.kinds.sql_form.writing import as_json, statement
from twinlake.topics.contract_file import load_contract

PAGES = sorted(
    page
    for folder in ("", "docs/**/", "jobs/", "examples/*/", "twinlake/templates/**/")
    for page in PROJECT.glob(f"{folder}*.md")
    if "adr" not in page.parts and page.name != "CHANGELOG.md"  # they say what was
)


@dataclass(frozen=True)
class Written:
    """A block, or a piece of code within a sentence, whose language is `inline`."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def written(*languages: str) -> list[Written]:
    return [one for page in PAGES for one in _of(page) if one.language in languages]


def _of(page: Path) -> Iterator[Written]:
    name = str(page.relative_to(PROJECT))
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(page.read_text()):
        line = token.map[0] + 1 if token.map else 0
        if token.type in ("fence", "code_block"):
            yield Written(name, line + 1, token.info, token.content)
        for part in token.children or ():
            if part.type == "code_inline":
                yield Written(name, line, "inline", part.content)


_CALL = re.compile(r"""(?:^|[\s;(|&/])twinlake ((?:'[^']*'|"[^"]*"|(?<!\s)\#|[^'"\#&|;)>])+)""")
"""Of a command line up to its end, a comment, or what the shell does with it."""


_OPTIONAL = str.maketrans("", "", "[]")


def calls(of: Written) -> Iterator[tuple[Written, str]]:
    """Each call of `twinlake` that is in it."""
    for number, line in enumerate(of.text.replace("\\\n", " ").splitlines()):
        for found in _CALL.finditer(line):
            if not found[1].startswith("import "):  # Python
                yield replace(of, line=of.line + number), found[1].translate(_OPTIONAL)


GENERAL = re.compile(r"^--home$|^COMMAND |OPTIONS$")
"""What is said of all commands, or at the head of one in their reference."""
CALLS = [one for block in written("", "shell", "sh", "inline") for one in calls(block)]


def test_every_command_is_there_and_takes_what_is_written() -> None:
    tree: Any = typer.main.get_command(build_app())

    asked = [(where, call) for where, call in CALLS if not GENERAL.search(call)]
    wrong = [f"{where}: twinlake {call}: {why}" for where, call in asked if (why := _refused(tree, call))]

    assert len(asked) > 500 and wrong == []


def test_commands_of_a_project_s_readme_are_among_them() -> None:
    assert ("twinlake/templates/project/README.md", "down") in [(one.page, call) for one, call in CALLS]


@pytest.mark.parametrize(
    "call",
    [
        "verifi sales", "verify sales --reparr", "down now", 'query "SELECT 1" --format cvs',
        "users add rita --role admn", "open consol",
    ],
)  # fmt: skip
def test_what_the_command_line_refuses_is_found(call: str) -> None:
    assert _refused(typer.main.get_command(build_app()), call) is not None


@pytest.mark.parametrize(
    "call", ["users add", "get", 'query "SELECT 1" --format csv', "users add NAME --role ROLE", "open"]
)
def test_a_sentence_may_leave_out_what_a_command_is_given(call: str) -> None:
    assert _refused(typer.main.get_command(build_app()), call) is None


def _refused(command: Any, call: str) -> str | None:
    """Why the command line would not take this call; None where it does. A value is looked at where an option
    has few."""
    words, within = shlex.split(call), None
    while True:
        alone = getattr(command, "alone", None)
        if alone and words[:1] and words[0] not in command.commands:
            words = [alone, *words]  # as `twinlake backup` says it itself
        context = command.context_class(command, parent=within, info_name=command.name)
        try:
            given, rest, _ = command.make_parser(context).parse_args(words)
            if not hasattr(command, "resolve_command"):
                return f"{rest} is too much" if rest else _unknown(command, given)
            if not rest:
                return None
            _, command, words = command.resolve_command(context, rest)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            return str(error.format_message())
        within = context


def _unknown(command: Any, given: dict[str, Any]) -> str | None:
    """A value that is none of those that its option has; NAME stands for one."""
    for one in command.params:
        known, value = (one.metavar or "").split("|"), given.get(one.name)
        if len(known) > 1 and isinstance(value, str) and value not in known and not value.isupper():
            return f"{value} is none of {', '.join(known)}"
    return None


ELSEWHERE = ("docs/project_files.md", "docs/plugins.md", "docs/editors.md")
"""Pages with TOML that is a project's, a package's, or a comment, and no settings."""


@pytest.mark.parametrize("block", [one for one in written("toml") if one.page not in ELSEWHERE], ids=str)
def test_settings_are_known_and_have_such_values(block: Written, tmp_path: Path) -> None:
    text = block.text.replace("/etc/twinlake", str(tmp_path))
    for secret in re.findall(rf'"({tmp_path}/.+?)"', text):
        Path(secret).write_text("x")
        Path(secret).chmod(0o600)
    file = tmp_path / "twinlake.toml"
    file.write_text(text)

    settings_file.load(file, {})


@pytest.mark.parametrize("block", written("python"), ids=str)
def test_python_is_python_imports_what_is_there_and_defines_what_a_project_takes(block: Written) -> None:
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("twinlake"):
            module = import_module(str(node.module))
            assert [one.name for one in node.names if not hasattr(module, one.name)] == []
    if any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TABLE" for node in tree.body):
        names = {name: getattr(twinlake, name) for name in twinlake.__all__}
        exec(compile(tree, str(block), "exec"), names)
        assert names["TABLE"].name.isidentifier()


DEFINED = ("docs/sql.md", "docs/definitions.md", "docs/gallery.md")
"""Pages whose SQL is that of definitions; that of others is what readers ask."""


@pytest.mark.parametrize("block", [one for one in written("sql") if one.page in DEFINED], ids=str)
def test_sql_of_definitions_is_one_and_is_written_as_it_would_be(block: Written) -> None:
    table = definition(block.text, "t")

    assert as_json(definition(statement(table), "t")) == as_json(table)


@pytest.mark.parametrize("block", written("yaml"), ids=str)
def test_yaml_is_yaml_and_a_contract_is_one_of_the_standard(block: Written, tmp_path: Path) -> None:
    found = yaml.safe_load(block.text)
    if isinstance(found, dict) and "apiVersion" in found:
        file = tmp_path / f"{found['name']}.yaml"
        file.write_text(block.text)
        assert load_contract(file).name == found["name"]
