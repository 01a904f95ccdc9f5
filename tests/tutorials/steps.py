"""A tutorial as steps: what its page has a reader type, write and see.

Every fenced block of a page is one of these, and a block that is none of them is an error:

- `shell`: each line is a command, and what follows ` # ` is for people. Of it two things are read: `again,
  until it shows LINE` (or `until it shows this`: the block of text behind it) and `ends with N`, the exit
  code, which is 0 otherwise.
- `text`: what a terminal shows of the last command, or a notebook of the last cell. Each of its lines is
  there, in this order; `...` stands for anything, and blanks count as one.
- `diff`, after a paragraph that ends with `` `PATH`: ``: an edit of that file. The lines that it keeps and
  removes are in the file once.
- another language, after such a paragraph: the whole of that file.
- `python` in a notebook, after any other paragraph: a cell.

In a numbered list, what is **bold** is pressed in a browser, which has opened the address that the last
command has shown, and a picture is what it shows then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

FILES = ("java", "javascript", "json", "proto", "python", "sql", "toml", "yaml")
"""The languages of blocks that are files."""
_PATH = re.compile(r"`([\w./-]+\.\w+)`:$")
_UNTIL = re.compile(r"again, until it shows (.+)")
_ENDS = re.compile(r"ends with (\d+)\b")


class PageError(Exception):
    """A block that is no step; the message has its line."""


@dataclass(frozen=True, kw_only=True)
class Write:
    """A file, as it is from now on."""

    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Lines of a file, and what is there from now on."""

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def of(self, text: str) -> str:
        """The file's new text.

        Raises:
            PageError: the lines are not there, or more than once.
        """
        lines, length = text.splitlines(), len(self.before)
        found = [at for at in range(len(lines)) if tuple(lines[at : at + length]) == self.before]
        if len(found) != 1:
            raise PageError(f"{self.path} has these lines {len(found)} times, not once: {self.before}")
        lines[found[0] : found[0] + length] = self.after
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Python of a notebook."""

    code: str


@dataclass(frozen=True, kw_only=True)
class Press:
    """What is pressed in a browser, by the label that one sees."""

    label: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What the browser shows, as a file of docs/pictures."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the last command or cell shows, at least."""

    lines: tuple[str, ...]

    def missing(self, output: str) -> str | None:
        """The first line that is not in the output, behind those before it; None where all are."""
        real = iter(map(_blanks, output.splitlines()))
        return next((line for line in self.lines if not any(_is_like(line, one) for one in real)), None)


@dataclass(frozen=True, kw_only=True)
class Command:
    """One line for the shell."""

    line: str
    until: Shown | None = None
    """Type it again until it shows this."""
    ends_with: int = 0


BELOW = Shown(lines=("this",))
"""What a command waits for until the block of text behind it is read."""
Step = Command | Write | Edit | Cell | Press | Picture | Shown


def of_page(page: Path) -> list[Step]:
    """The steps of the page in this file; it is a notebook's where the notebook lies beside it.

    Raises:
        PageError: a block is no step.
    """
    return steps(page.read_text(), is_notebook=page.with_suffix(".ipynb").exists())


def steps(page: str, *, is_notebook: bool = False) -> list[Step]:
    """The steps of a page, in order.

    Raises:
        PageError: a block is no step.
    """
    says, found, lists = "", list[Step](), 0
    for token in MarkdownIt().parse(page):
        if token.type in ("ordered_list_open", "ordered_list_close"):
            lists += token.nesting
        elif token.type == "inline":
            says = token.content
            found += _of_item(token.children or ()) if lists else ()
        elif token.type == "code_block":
            raise _error(token.map, "an indented block has no language")
        elif token.type == "fence":
            path = _PATH.search(says)
            for step in _of_block(token.info, token.content, path and path[1], is_notebook, token.map):
                if isinstance(step, Shown):
                    found[-1:] = [_waiting_for(step, found[-1:], token.map)]
                found.append(step)
            says = ""  # a path is for the block behind it
    for step in found:
        if isinstance(step, Command) and step.until == BELOW:
            raise PageError(f"{step.line}: there is no block of text behind it")
    return found


def _of_item(parts: Iterable[Token]) -> Iterator[Step]:
    bold = False
    for part in parts:
        if part.type in ("strong_open", "strong_close"):
            bold = part.type == "strong_open"
        elif part.type == "image":
            yield Picture(name=PurePosixPath(str(part.attrs["src"])).name)
        elif bold:
            yield Press(label=part.content)


def _waiting_for(shown: Shown, last: list[Step], where: list[int] | None) -> Step:
    """The step before what is shown, which may wait for it."""
    if not last or not isinstance(last[0], Command | Cell):
        raise _error(where, "there is no command before it that could show this")
    if isinstance(last[0], Command) and last[0].until == BELOW:
        return replace(last[0], until=shown)
    return last[0]


def _of_block(
    language: str, content: str, path: str | None, is_notebook: bool, where: list[int] | None
) -> Iterator[Step]:
    if language == "shell":
        yield from (_command(line, where) for line in content.splitlines())
    elif language == "text":
        yield Shown(lines=tuple(map(_blanks, content.splitlines())))
    elif language == "diff" and path:
        yield _edit(path, content.splitlines(), where)
    elif language in FILES and path:
        yield Write(path=path, text=content)
    elif language == "python" and is_notebook:
        yield Cell(code=content)
    elif language in ("diff", *FILES):
        raise _error(where, f"no paragraph that ends with `PATH`: is before this block of {language}")
    else:
        raise _error(where, f"{language or 'a block without a language'} is no step")


def _command(text: str, where: list[int] | None) -> Command:
    line, _, comment = (part.strip() for part in text.partition(" # "))
    again, ends = _UNTIL.search(comment), _ENDS.search(comment)
    if not line or line.startswith("#") or line.endswith("\\"):
        raise _error(where, f"{text!r} is not a command on a line of its own")
    if "again" in comment and not again:
        raise _error(where, f"{comment!r} does not say `again, until it shows LINE`")
    until = Shown(lines=(_blanks(again[1]),)) if again else None
    return Command(line=line, until=until, ends_with=int(ends[1]) if ends else 0)


def _edit(path: str, lines: list[str], where: list[int] | None) -> Edit:
    wrong = [line for line in lines if line[:1] not in (" ", "-", "+")]
    if wrong:
        raise _error(where, f"a line of a diff begins with a blank, - or +, not {wrong[0]!r}")
    before, after = _without("+", lines), _without("-", lines)
    if not before or before == after:
        raise _error(where, "the diff says no place, or changes nothing")
    return Edit(path=path, before=before, after=after)


def _without(sign: str, lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line[1:] for line in lines if line[0] != sign)


def _is_like(line: str, real: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, line.split("..."))), real) is not None


def _blanks(text: str) -> str:
    return " ".join(text.split())


def _error(where: list[int] | None, why: str) -> PageError:
    return PageError(f"line {where[0] + 1 if where else '?'}: {why}")
