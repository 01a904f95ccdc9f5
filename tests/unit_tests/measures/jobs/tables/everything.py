"""The measures that no table of the project and the gallery has."""

from twinlake import Aggregate, ArgMax, ArgMin, CollectSet, First, Last, Stddev, TopK, Variance

TABLE = Aggregate(
    name="everything",
    inputs=("visits",),
    columns={"page": "page", "kind": "kind", "seconds": "seconds", "cents": "cents", "at": "at"},
    keys=("page",),
    measures={
        "variance": Variance("seconds"),
        "deviation": Stddev("seconds"),
        "first": First("kind"),
        "last": Last("kind"),
        "cheapest": ArgMin("at", by="cents"),
        "dearest": ArgMax("at", by="cents"),
        "often": TopK("kind", most=2),
        "kinds": CollectSet("kind", most=1),
    },
)
