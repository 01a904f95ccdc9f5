"""What is asked of external services before anything uses them."""
