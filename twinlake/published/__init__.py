"""Live tables as plain Delta tables, for engines that know nothing of Twinlake."""
