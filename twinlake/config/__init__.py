"""What can be set, where it stands, and where things are: folders, addresses, logins."""
