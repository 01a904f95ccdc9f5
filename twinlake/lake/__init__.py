"""What is on disk, and its one edge to storage."""
