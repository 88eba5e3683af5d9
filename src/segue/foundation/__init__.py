"""What every room may use and what knows nothing of conversations: JSON, quoting, plurals, packages."""
