"""Where data comes from: column by column by the definitions, and as OpenLineage's events of what runs."""
