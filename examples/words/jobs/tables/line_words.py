"""How often each word stands in a message of the log, in small letters."""

from twinlake import Aggregate, Count, Explode

TABLE = Aggregate(
    name="line_words",
    inputs=("log_lines",),
    explode=Explode(name="word", array=r"split(lower(message), r'[^\p{L}]+')"),
    where="word <> ''",
    columns={"word": "word"},
    keys=("word",),
    measures={"times": Count()},
)
