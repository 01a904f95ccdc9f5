"""Owns what the witness does not evaluate: an expression that is refused, and guards that refuse by data."""

from __future__ import annotations

from twinlake.base.errors import UsageError

PREFIX = "not witnessed: "
"""How DuckDB's error begins where a guard has raised."""
_LONGEST = 300
_WHY = " (because "


class Refused(UsageError):
    """An expression that the two engines may answer differently, or that nobody has compared: no verdict."""

    def __init__(self, expression: str, why: str) -> None:
        self.expression = shortened(expression)
        self.why_text = why
        super().__init__(
            f"not witnessed because of {self.expression}",
            why,
            "write it with what docs/witness.md lists, or leave its rows to Spark",
            {"expression": self.expression},
        )

    @property
    def words(self) -> str:
        """For a person: what, and why."""
        return f"{self.expression} ({self.why_text})" if self.why_text else self.expression


class UnknownField(Refused):
    """A field that a struct has not: no engine computes it."""

    def __init__(self, expression: str, name: str, why: str) -> None:
        super().__init__(expression, why)
        self.name = name


def shortened(expression: str) -> str:
    """The expression on one line, cut where it is long."""
    line = " ".join(expression.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def one_line(error: BaseException, most: int = _LONGEST) -> str:
    """What an error says, on one line, at most so many characters of it; its name where it says nothing."""
    return " ".join(str(error).split())[:most] or type(error).__name__


def guarded(condition: str, sql: str, expression: str, why: str) -> str:
    """DuckDB SQL that raises `raised`'s message for rows that meet the condition, and is `sql` for others."""
    message = f"{PREFIX}{shortened(expression)}{_WHY}{why})".replace("'", "''")
    return f"CASE WHEN {condition} THEN error('{message}') ELSE {sql} END"


def raised(message: str) -> tuple[str, str] | None:
    """(expression, why) of a guard, from what DuckDB says; None where it is an error of another kind."""
    _, begun, said = message.partition(PREFIX)
    expression, _, why = said.rpartition(_WHY)
    return (expression, why.rpartition(")")[0]) if begun and expression else None
