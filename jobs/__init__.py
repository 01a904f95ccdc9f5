"""What Twinlake does: nouns, definitions, edges, verbs, servers and commands."""
