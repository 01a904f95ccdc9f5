"""The batch layer: rebuild, verify, merge, maintain."""
