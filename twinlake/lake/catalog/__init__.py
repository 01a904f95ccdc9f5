"""What the lake knows of tables: versions, segments, releases, certificates, jobs."""
