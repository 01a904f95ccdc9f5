"""Blue-green releases: check, plan, build, compare, gate, promote, and what a person reads of them."""
