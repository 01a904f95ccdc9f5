"""The family of texts: letters, length, parts, padding, search, regular expressions."""

from __future__ import annotations

from sqlglot import exp

from twinlake.witness.rules import letters
from twinlake.witness.rules.casts import converted
from twinlake.witness.rules.regular import Regular, listed
from twinlake.witness.rules.term import Call, Function, Rule, Scope, Term, bind, cast, int_of
from twinlake.witness.types import BOOLEAN, INT, INTEGERS, STRING, UP_TO_INT, array, text_literal

_GRAPHEMES = r"[^\x{0}-\x{c}\x{e}-\x{2ff}]"
"""What DuckDB may take for a part of the character before it."""
_SHOWN = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "decimal", "date", "timestamp")
"""Types that concat makes a text of."""


def _texts(call: Call, *counts: int) -> None:
    call.takes(*counts)
    if any(name not in ("string", "void") for name in call.types):
        raise call.refused()


def case_changed(call: Call) -> Term:
    """upper and lower, but for letters of which the engines know other forms."""
    _texts(call, 1)
    name = "upper" if call.name in ("upper", "ucase") else "lower"
    points = letters.UPPER if name == "upper" else letters.LOWER
    pattern = text_literal(f"[{letters.regular_class(points)}]")
    sql = bind(
        call.terms,
        lambda it: call.guarded(
            f"regexp_matches({it}, {pattern})", f"{name}({it})", "a letter that the engines write otherwise"
        ),
    )
    return Term(sql=f"({sql})", type=STRING)


length = int_of(string="length", binary="octet_length")
bytes_of = int_of(string="strlen", binary="octet_length")


def trimmed(call: Call) -> Term:
    """Spark trims the space and no other blank."""
    _texts(call, 1)
    name = call.name.removeprefix("b")
    return Term(sql=f"{name}({call.terms[0].sql}, ' ')", type=STRING)


def concatenated(call: Call) -> Term:
    """NULL where an operand is."""
    if call.types and all(name == "array" for name in call.types):
        return joined_arrays(call)
    if not call.terms or any(name not in _SHOWN for name in call.types):
        raise call.refused()
    return Term(sql=_joined([_shown(term, call) for term in call.terms]), type=STRING)


def _shown(term: Term, call: Call) -> str:
    return converted(term, STRING, call.node, call.scope).sql


def _joined(parts: list[str]) -> str:
    return f"({' || '.join(parts)})"


def joined_arrays(call: Call) -> Term:
    if any(term.type != call.terms[0].type for term in call.terms):
        raise call.refused()
    nulls = " OR ".join(f"{term.sql} IS NULL" for term in call.terms)
    joined = call.terms[0].sql
    for term in call.terms[1:]:
        joined = f"list_concat({joined}, {term.sql})"
    return Term(sql=f"(CASE WHEN {nulls} THEN NULL ELSE {joined} END)", type=call.terms[0].type)


def pipe(node: exp.Expression, scope: Scope) -> Term:
    """`a || b`; Spark binds + and - as tightly, sqlglot more."""
    if isinstance(node.expression, (exp.Add, exp.Sub)) or isinstance(node.this, (exp.Add, exp.Sub)):
        raise scope.refused(node, "sums beside || need parentheses")
    terms = (scope.term(node.this), scope.term(node.expression))
    return concatenated(Call(name="||", terms=terms, node=node, scope=scope))


def joined_with(call: Call) -> Term:
    """concat_ws of texts and whole numbers passes over NULL."""
    if len(call.terms) < 2 or any(name not in ("string", *INTEGERS) for name in call.types):
        raise call.refused()
    texts = (term.sql if term.type == STRING else f"CAST({term.sql} AS VARCHAR)" for term in call.terms)
    return Term(sql=f"concat_ws({', '.join(texts)})", type=STRING)


def part(call: Call) -> Term:
    """substring: counted from 1, 0 is 1, from the end where it is negative."""
    call.takes(2, 3)
    if call.types[0] != "string" or any(name not in UP_TO_INT for name in call.types[1:]):
        raise call.refused()
    at = call.terms[1]
    place = (
        str(at.literal or 1)
        if isinstance(at.literal, int)
        else f"coalesce(nullif({at.sql}, 0), {at.sql} + 1)"
    )
    if len(call.terms) == 2:
        # DuckDB cuts a negative place that lies before the text
        return Term(sql=f"substring({call.terms[0].sql}, {place}, 2147483647)", type=STRING)
    count = f"greatest({call.terms[2].sql}, 0)"
    if not isinstance(call.terms[2].literal, int):
        count = f"CASE WHEN {call.terms[2].sql} IS NOT NULL THEN {count} END"
    return Term(sql=f"substring({call.terms[0].sql}, {place}, {count})", type=STRING)


def end(call: Call) -> Term:
    """left and right."""
    call.takes(2)
    if call.types[0] != "string" or call.types[1] not in UP_TO_INT:
        raise call.refused()
    count = call.terms[1].sql
    sql = f"CASE WHEN {count} IS NOT NULL THEN {call.name}({call.terms[0].sql}, greatest({count}, 0)) END"
    return Term(sql=f"({sql})", type=STRING)


def replaced(call: Call) -> Term:
    _texts(call, 2, 3)
    with_ = call.terms[2].sql if len(call.terms) == 3 else "''"
    return Term(sql=f"replace({call.terms[0].sql}, {call.terms[1].sql}, {with_})", type=STRING)


def repeated(call: Call) -> Term:
    call.takes(2)
    if call.types[0] != "string" or call.types[1] not in UP_TO_INT:
        raise call.refused()
    return Term(sql=f"repeat({call.terms[0].sql}, {call.terms[1].sql})", type=STRING)


def padded(call: Call) -> Term:
    """lpad and rpad with a text that is written out."""
    call.takes(2, 3)
    if call.types[0] != "string" or not isinstance(call.terms[1].literal, int):
        raise call.refused()
    filling = call.string(2) if len(call.terms) == 3 else " "
    if not filling or call.number(1) < 0:
        raise call.refused()
    sql = f"{call.name}({call.terms[0].sql}, {call.number(1)}, {text_literal(filling)})"
    return Term(sql=sql, type=STRING)


def has(call: Call) -> Term:
    """startswith, endswith, contains."""
    _texts(call, 2)
    name = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}[call.name]
    return Term(sql=f"{name}({call.terms[0].sql}, {call.terms[1].sql})", type=BOOLEAN)


def place(call: Call) -> Term:
    """instr(text, part), locate and position(part, text): 0 where it is not in it."""
    _texts(call, 2)
    text, sought = call.terms if call.name == "instr" else call.terms[::-1]
    return Term(sql=cast(f"strpos({text.sql}, {sought.sql})", INT), type=INT)


def first_code_point(call: Call) -> Term:
    _texts(call, 1)
    return Term(sql=cast(f"ascii({call.terms[0].sql})", INT), type=INT)


def translated(call: Call) -> Term:
    _texts(call, 3)
    given, wanted = text_literal(call.string(1)), text_literal(call.string(2))
    return Term(sql=f"translate({call.terms[0].sql}, {given}, {wanted})", type=STRING)


def reversed_(call: Call) -> Term:
    _texts(call, 1)
    sql = bind(
        call.terms,
        lambda it: call.guarded(
            f"regexp_matches({it}, '{_GRAPHEMES}')",
            f"reverse({it})",
            "a character that may be part of another",
        ),
    )
    return Term(sql=f"({sql})", type=STRING)


def hashed(call: Call) -> Term:
    """md5 and sha2 of 256 bits, in hexadecimal."""
    call.takes(2 if call.name == "sha2" else 1)
    if call.types[0] not in ("string", "binary") or (call.name == "sha2" and call.number(1) not in (0, 256)):
        raise call.refused()
    name = {"md5": "md5", "sha2": "sha256", "sha1": "sha1", "sha": "sha1"}[call.name]
    return Term(sql=f"{name}({call.terms[0].sql})", type=STRING)


def hexadecimal(call: Call) -> Term:
    call.takes(1)
    if call.types[0] not in ("string", "binary"):
        raise call.refused()
    return Term(sql=f"hex({call.terms[0].sql})", type=STRING)


def _regular(call: Call, index: int, can_be_empty: bool = True) -> Regular:
    """The operand as a regular expression; Refused where it is not of a listed form."""
    found = listed(call.string(index))
    if found is None or (found.can_be_empty and not can_be_empty):
        raise call.refused("this form of a regular expression is not listed")
    return found


def _matched(call: Call, regular: Regular, sql: str, it: str) -> str:
    if not regular.doubtful:
        return sql
    condition = f"regexp_matches({it}, {text_literal(f'[{regular.doubtful}]')})"
    return call.guarded(condition, sql, "a character that the engines put into other classes")


def split(call: Call) -> Term:
    """By a regular expression; empty parts stay."""
    call.takes(2)
    if call.types[0] != "string":
        raise call.refused()
    regular = _regular(call, 1, can_be_empty=False)
    pattern = text_literal(regular.sql)
    sql = bind(call.terms[:1], lambda it: _matched(call, regular, f"string_split_regex({it}, {pattern})", it))
    return Term(sql=f"({sql})", type=array(STRING))


def split_part(call: Call) -> Term:
    call.takes(3)
    if call.types[0] != "string" or not call.string(1) or call.number(2) == 0:
        raise call.refused()
    sql = f"split_part({call.terms[0].sql}, {text_literal(call.string(1))}, {call.number(2)})"
    return Term(sql=sql, type=STRING)


def matches(call: Call) -> Term:
    call.takes(2)
    if call.types[0] != "string":
        raise call.refused()
    regular = _regular(call, 1)
    pattern = text_literal(regular.sql)
    sql = bind(call.terms[:1], lambda it: _matched(call, regular, f"regexp_matches({it}, {pattern})", it))
    return Term(sql=f"({sql})", type=BOOLEAN)


def rlike(node: exp.Expression, scope: Scope) -> Term:
    terms = (scope.term(node.this), scope.term(node.expression))
    term = matches(Call(name="rlike", terms=terms, node=node, scope=scope))
    return Term(sql=f"(NOT {term.sql})", type=BOOLEAN) if node.args.get("negate") else term


def replaced_by_pattern(call: Call) -> Term:
    call.takes(3)
    if call.types[0] != "string":
        raise call.refused()
    regular, with_ = _regular(call, 1, can_be_empty=False), call.string(2)
    if set(with_) & set("$\\"):
        raise call.refused("groups in what is put instead are not listed")
    pattern, put = text_literal(regular.sql), text_literal(with_)
    sql = bind(
        call.terms[:1],
        lambda it: _matched(call, regular, f"regexp_replace({it}, {pattern}, {put}, 'g')", it),
    )
    return Term(sql=f"({sql})", type=STRING)


def extracted(call: Call) -> Term:
    """The first match's group, 1 where none is named; '' without a match."""
    call.takes(2, 3)
    if call.types[0] != "string":
        raise call.refused()
    regular = _regular(call, 1)
    group = call.number(2) if len(call.terms) == 3 else 1
    if not 0 <= group <= regular.groups:
        raise call.refused("the regular expression has no such group")
    pattern = text_literal(regular.sql)
    sql = bind(
        call.terms[:1], lambda it: _matched(call, regular, f"regexp_extract({it}, {pattern}, {group})", it)
    )
    return Term(sql=f"({sql})", type=STRING)


NODES: dict[type[exp.Expression], Rule] = {exp.DPipe: pipe, exp.RegexpLike: rlike}
FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("upper", "ucase", "lower", "lcase"), case_changed),
    **dict.fromkeys(("length", "char_length", "character_length", "len"), length), "octet_length": bytes_of,
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim"), trimmed), "concat": concatenated,
    "concat_ws": joined_with, "substring": part, "substr": part, "left": end, "right": end,
    "replace": replaced, "repeat": repeated, "lpad": padded, "rpad": padded,
    **dict.fromkeys(("startswith", "endswith", "contains"), has),
    **dict.fromkeys(("instr", "locate", "position"), place), "ascii": first_code_point,
    "translate": translated, "reverse": reversed_,
    **dict.fromkeys(("md5", "sha2", "sha1", "sha"), hashed), "hex": hexadecimal, "split": split,
    "split_part": split_part, **dict.fromkeys(("rlike", "regexp", "regexp_like"), matches),
    "regexp_replace": replaced_by_pattern, "regexp_extract": extracted,
}  # fmt: skip
