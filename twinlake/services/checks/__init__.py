"""What is asked of services of one's own before anything uses them."""
