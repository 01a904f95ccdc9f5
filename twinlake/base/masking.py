"""Masking: takes known secrets out of a text, in whatever form they may stand there, and says which are left.

A secret is looked for as it is; as JSON, an URL, properties and Java's UTF-16 write it; and in base64, by
itself or amid other text, as a login has it. Of one that a log has cut off, the beginning is enough. Besides,
what stands where passwords and tokens do goes, whoever's it is: it may be one of before.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus

MASK = "██████"
SHORT = 4
"""A secret that has fewer characters is masked where it is a word: it may be part of many others."""
_CUT = 12
"""So many characters of a long one are enough to know it by."""
_LONG = 24
_REST = r"[A-Za-z0-9_\-+/=%.~]*"
_NAMED = re.compile(
    r"""((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)s?(?:\\?["'])?\s*[:=]\s*"""
    r"""(?:\\?["'])?)(?!(?:null|none|true|false)\b)[^\s"',;&}\\]{3,}""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9_\-+/=.~]{8,}", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(://[^\s/:@\"']{0,200}:)[^\s/@\"']{1,500}(?=@)")
"""It begins with what is seldom, and has an end: a log may be one line of megabytes."""


@dataclass(frozen=True)
class Masker:
    """Secrets by what each is, as people call it."""

    secrets: Mapping[str, str]

    def mask(self, text: str) -> str:
        """The text without any of them."""
        for prefix, pattern in self._patterns:
            if prefix in text:
                text = pattern.sub(MASK, text)
        text = _IN_ADDRESS.sub(rf"\g<1>{MASK}", text)
        text = _SCHEME.sub(rf"\g<1> {MASK}", text)
        return _NAMED.sub(rf"\g<1>{MASK}", text)

    def left_in(self, content: bytes) -> list[str]:
        """What each is whose secret is in the content all the same."""
        text = content.decode("utf-8", "replace")
        return [
            name
            for name, secret in self.secrets.items()
            if any(prefix in text and pattern.search(text) for prefix, pattern in _patterns_of(secret))
        ]

    @cached_property
    def longest(self) -> int:
        """No form of a secret has more characters."""
        return max((len(form) for one in self.secrets.values() for form in forms(one)), default=0)

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """The longest first: of two that begin alike neither leaves its end."""
        found = {one for secret in self.secrets.values() for one in _patterns_of(secret)}
        return sorted(found, key=lambda one: -len(one[1].pattern))


def forms(secret: str) -> set[str]:
    """Every way in which it may be written."""
    found = {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
    }
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        found |= {quoted, re.sub(r"%[0-9A-F]{2}", lambda one: one[0].lower(), quoted)}
    for text in {*found}:
        found |= {"".join(f"{one}\0" for one in text)[:-1], *_in_base64(text.encode())}
    return {one for one in found if one}


def _in_base64(secret: bytes) -> Iterator[str]:
    """The characters that any base64 has which holds it, wherever it begins there."""
    for before in range(3):
        coded = base64.b64encode(bytes(before) + secret).decode().rstrip("=")
        first = (0, 2, 3)[before]  # these hold bits of what stands before it
        last = len(coded) if (before + len(secret)) % 3 == 0 else len(coded) - 1
        if last - first >= 8:
            yield coded[first:last]
            yield coded[first:last].translate(str.maketrans("+/", "-_"))


def _patterns_of(secret: str) -> Iterable[tuple[str, re.Pattern[str]]]:
    if len(secret) < SHORT:
        return [(secret, re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)"))]
    found = []
    for form in forms(secret):
        if len(form) >= _LONG and "\0" not in form:
            found.append((form[:_CUT], re.compile(re.escape(form[:_CUT]) + _REST)))
        found.append((form, re.compile(re.escape(form))))
    return found
