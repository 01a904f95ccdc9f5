"""The speed layer: versions advance by appending partials, each by its one owner."""
