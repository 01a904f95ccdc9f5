"""Hours in which a card was used as thieves use one: in many countries, or for far more than usual."""

from twinlake import Derived

TABLE = Derived(
    name="suspicious_hours",
    reads=("card_hours", "card_amounts"),
    columns=("card", "hour", "merchants", "countries", "largest", "median"),
    keys=("card", "hour"),
    by=("card",),
    sql="""
        SELECT h.card, h.window_start AS hour, h.merchants, h.countries, h.largest, a.median
        FROM card_hours AS h JOIN card_amounts AS a ON h.card = a.card
        WHERE h.countries >= 3 OR h.largest > 30 * a.median
    """,
)
