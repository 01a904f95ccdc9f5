"""How often each word was said, in small letters."""

from twinlake import Aggregate, Count, Explode

TABLE = Aggregate(
    name="word_count",
    inputs=("sentences",),
    explode=Explode(name="word", array=r"split(lower(text), r'[^\p{L}]+')"),
    where="word <> ''",
    columns={"word": "word"},
    keys=("word",),
    measures={"times": Count()},
)
