"""Owns the reading of a sample: the JSON records of a text, one after the other or in an array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from twinlake.base.errors import UsageError

JsonObject = dict[str, Any]
_SPACE = " \t\r\n"
_REMEDY = "let each line hold one JSON object, or the file one array of them"


def records_in(text: str, file: str) -> list[JsonObject]:
    """The records of a file; UsageError says the line of what is no record that a topic could take."""
    found: list[JsonObject] = []
    for line, value in _values(text, file):
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                why = f"a record is a JSON object, and this is {json.dumps(one)[:60]}"
                raise UsageError(f"{file}:{line}: this is not a record", why, _REMEDY)
            found.append(one)
    if not found:
        raise UsageError(f"{file} has no records", "there is nothing to make a contract of", _REMEDY)
    return found


def record_of(value: bytes) -> JsonObject | None:
    """A record's value as JSON; None where it is no object that a topic could take."""
    try:
        found = _decoder().decode(value.decode())
        json.dumps(found, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _values(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """Each JSON document of the text, with the line it begins in."""
    decoder, at, end = _decoder(), 0, len(text)
    line, counted = 1, 0
    while True:
        while at < end and text[at] in _SPACE:
            at += 1
        if at == end:
            return
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = decoder.raw_decode(text, at)
            json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            raise UsageError(f"{file}:{error.lineno}: this is not JSON", error.msg, _REMEDY) from error
        except UnicodeEncodeError as error:
            why = "a text has half a character in it (a lone surrogate), which no record may have"
            raise UsageError(f"{file}:{line}: this is not a record", why, "correct the text") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file}:{line}: this is not a record", str(error), "correct it") from error
        yield line, value


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)


def _once(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twice!r} is there twice in one object")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
