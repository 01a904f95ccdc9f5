"""Owns the time zones of which every Java and every DuckDB has the same rules, for the years 1970 to 2037.

Rules come with Java and with DuckDB, each of its own year. Here are zones whose rules for these years have
not been changed in the tz database since 2020, so that the year does not matter. Left out are those whose
past some builds of Java and others of DuckDB know more of (such as Winnipeg), and those whose governments
have moved their clocks lately (such as Mexico's).
"""

from __future__ import annotations

from twinlake.witness.rules.coercion import to
from twinlake.witness.rules.term import Call, Function, Term, bind, cast
from twinlake.witness.types import TIMESTAMP, text_literal

FIRST, AFTER = "1970-01-01 00:00:00", "2038-01-01 00:00:00"

_PLACES: dict[str, str] = {
    "Africa": "Accra Algiers Johannesburg Lagos Nairobi Tunis",
    "America": (
        "Anchorage Argentina/Buenos_Aires Chicago Denver Detroit Halifax Jamaica Lima Los_Angeles New_York "
        "Panama Phoenix Puerto_Rico Regina Sao_Paulo St_Johns Toronto"
    ),
    "Asia": (
        "Bangkok Dhaka Dubai Hong_Kong Jakarta Jerusalem Karachi Kathmandu Kolkata Kuwait Qatar Riyadh "
        "Seoul Shanghai Singapore Taipei Tokyo"
    ),
    "Australia": "Adelaide Brisbane Darwin Hobart Melbourne Perth Sydney",
    "Europe": (
        "Amsterdam Andorra Athens Belgrade Berlin Bratislava Brussels Bucharest Budapest Copenhagen "
        "Dublin Gibraltar Helsinki Istanbul Ljubljana London Luxembourg Madrid Malta Monaco Moscow "
        "Oslo Paris Prague Riga Rome Sarajevo Skopje Sofia Stockholm Tallinn Vaduz Vatican Vienna Vilnius "
        "Warsaw Zagreb Zurich"
    ),
    "Pacific": "Auckland Honolulu",
    "Etc": "GMT UTC",
}
ZONES = frozenset(
    {"UTC", "GMT"} | {f"{area}/{place}" for area, places in _PLACES.items() for place in places.split()}
)
"""`tests/witness/test_zones.py` asks both engines about each, at every change of its rules."""


def in_zone(call: Call) -> Term:
    """from_utc_timestamp(time, zone): the zone's wall clock, for 1970 to 2037, whose rules are compared."""
    call.takes(2)
    zone = call.string(1)
    if call.types[0] not in ("date", "timestamp") or zone not in ZONES:
        raise call.refused()
    low, high = (cast(f"'{text}'", TIMESTAMP) for text in (FIRST, AFTER))
    name = text_literal(zone)
    sql = bind(
        [to(call.terms[0], TIMESTAMP)],
        lambda it: call.guarded(
            f"NOT ({it} >= {low} AND {it} < {high})",
            f"timezone({name}, timezone('UTC', {it}))",
            "a time before 1970 or after 2037, of which the engines may have other rules of zones",
        ),
    )
    return Term(sql=f"({sql})", type=TIMESTAMP)


FUNCTIONS: dict[str, Function] = {"from_utc_timestamp": in_zone}
