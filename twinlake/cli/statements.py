"""Where a statement of SQL ends: at a ; that is in no text, no name and no comment. Cuts what comes piece by
piece, and looks at each piece once."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<end>;)|(?P<blank>\s+|--[^\n]*)|(?P<opens>/\*|(?:(?<!\w)[rR])?['\"]|`)|[^\s;'\"`/\-rR]+|.", re.DOTALL
)
_INSIDE = {
    "'": re.compile(r"[^'\\]*(?:\\.[^'\\]*)*", re.DOTALL),
    '"': re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL),
    "r'": re.compile("[^']*"),
    'r"': re.compile('[^"]*'),
    "`": re.compile("[^`]*"),
}
"""What a text or a name holds, by what opens it. A doubled quote is an end and a beginning."""
_COMMENT = re.compile(r"/\*|\*/")


class Statements:
    """Those of a text that comes in pieces. A piece ends at the end of a line, or is the last one."""

    def __init__(self) -> None:
        self._begun: list[str] = []
        self._open = ""
        self._comments = 0
        """How many are open: Spark nests them."""
        self._says_anything = False

    @property
    def is_begun(self) -> bool:
        """Whether there is anything but blanks since the last ;."""
        return any(not piece.isspace() for piece in self._begun)

    def add(self, text: str) -> list[str]:
        """The statements that end in this piece, without the ;."""
        found, at, begin = list[str](), 0, 0
        while at < len(text):
            if self._comments:
                at = self._past_comment(text, at)
            elif self._open:
                at = self._past_text(text, at)
            else:
                at, kind = self._past_token(text, at)
                if kind == "end":
                    self._begun.append(text[begin : at - 1])
                    found += self.rest()
                    begin = at
        if text[begin:]:
            self._begun.append(text[begin:])
        return found

    def rest(self) -> list[str]:
        """What has begun and has no ; yet, if that is more than comments; after it another one begins."""
        found = ["".join(self._begun).strip()] if self._says_anything else []
        self._begun, self._says_anything = [], False
        return found

    def _past_token(self, text: str, at: int) -> tuple[int, str | None]:
        found = _TOKEN.match(text, at)
        assert found  # its last alternative is any character
        if found[0] == "/*":
            self._comments = 1
        elif found.lastgroup == "opens":
            self._open = found[0].lower()
        self._says_anything |= found.lastgroup not in ("end", "blank") and not self._comments
        return found.end(), found.lastgroup

    def _past_comment(self, text: str, at: int) -> int:
        found = _COMMENT.search(text, at)
        if found is None:
            return len(text)
        self._comments += 1 if found[0] == "/*" else -1
        return found.end()

    def _past_text(self, text: str, at: int) -> int:
        found = _INSIDE[self._open].match(text, at)
        assert found  # it may be empty
        if found.end() < len(text) and text[found.end()] == self._open[-1]:
            self._open = ""
            return found.end() + 1
        return len(text)
