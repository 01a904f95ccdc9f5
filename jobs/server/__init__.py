"""The servers: thin processes around the verbs. `lake` is the only writer, `sql` the readers' door."""
