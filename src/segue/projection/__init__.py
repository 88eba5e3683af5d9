"""A stored history in, what one target accepts out, and a report of every change between."""
