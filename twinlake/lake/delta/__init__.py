"""Delta tables as files: commits, data files, checkpoints, damage."""
