"""The batch layer: rebuild, verify, diff, merge, maintain."""
