"""How often each word was said, in small letters."""

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.steps import Explode

TABLE = Aggregate(
    name="word_count",
    inputs=("sentences",),
    explode=Explode(name="word", array=r"split(lower(text), r'[^\p{L}]+')"),
    where="word <> ''",
    columns={"word": "word"},
    keys=("word",),
    measures={"times": Count()},
)
