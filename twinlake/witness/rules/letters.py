"""Owns the code points of which Spark 4.1.1 and DuckDB 2.0.0 do not say the same.

`tests/witness/test_code_points.py` asks both engines about all of Unicode, and compares with what is here.
"""

from __future__ import annotations


def code_points(ranges: str) -> tuple[tuple[int, int], ...]:
    """(first, last) of each, from hexadecimal text."""
    found = (one.partition("-") for one in ranges.split())
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in found)


def regular_class(points: tuple[tuple[int, int], ...]) -> str:
    """The inside of a class of DuckDB's regular expressions."""
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in points)


LOWER = code_points("130 3a3 1c89 a7cb-a7cc a7da a7dc 10d50-10d65")
"""Letters with another small letter; of a capital sigma Spark looks at its neighbours."""
UPPER = code_points(
    "df 149 19b 1f0 264 390 3b0 587 1c8a 1e96-1e9a 1f50 1f52 1f54 1f56 1f80-1faf 1fb2-1fb4 1fb6-1fb7 1fbc "
    "1fc2-1fc4 1fc6-1fc7 1fcc 1fd2-1fd3 1fd6-1fd7 1fe2-1fe4 1fe6-1fe7 1ff2-1ff4 1ff6-1ff7 1ffc a7cd a7db "
    "fb00-fb06 fb13-fb17 10d70-10d85"
)
"""Letters with other capital letters."""
CATEGORIES = {
    "L": code_points(
        "870-887 889-88e 8b5 8c8-8c9 c5d cdd 170d 171f 1b4c 2c2f 2c5f 9ffd-9fff a7c0-a7c1 a7d0-a7d1 a7d3 "
        "a7d5-a7d9 a7f2-a7f4 10570-1057a 1057c-1058a 1058c-10592 10594-10595 10597-105a1 105a3-105b1 "
        "105b3-105b9 105bb-105bc 10780-10785 10787-107b0 107b2-107ba 10f70-10f81 11071-11072 11075 "
        "1123f-11240 11740-11746 11ab0-11abf 11f02 11f04-11f10 11f12-11f33 12f90-12ff0 1342f 13441-13446 "
        "16a70-16abe 1aff0-1aff3 1aff5-1affb 1affd-1affe 1b11f-1b122 1b132 1b155 1df00-1df1e 1df25-1df2a "
        "1e030-1e06d 1e290-1e2ad 1e4d0-1e4eb 1e7e0-1e7e6 1e7e8-1e7eb 1e7ed-1e7ee 1e7f0-1e7fe 2a6de-2a6df "
        "2b735-2b739 31350-323af"
    ),
    "Lu": code_points("2c2f a7c0 a7d0 a7d6 a7d8 10570-1057a 1057c-1058a 1058c-10592 10594-10595"),
    "Ll": code_points(
        "2c5f a7c1 a7d1 a7d3 a7d5 a7d7 a7d9 10597-105a1 105a3-105b1 105b3-105b9 105bb-105bc 1df00-1df09 "
        "1df0b-1df1e 1df25-1df2a"
    ),
    "N": code_points("11f50-11f59 16ac0-16ac9 1d2c0-1d2d3 1e4f0-1e4f9"),
    "P": code_points("61d 1b7d-1b7e 2e53-2e5d 10f86-10f89 116b9 11b00-11b09 11f43-11f4f 12ff1-12ff2"),
}
"""By category of Unicode, such as L of `\\p{L}`: what one engine has in it and the other has not."""
