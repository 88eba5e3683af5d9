"""Replies for clients: what a client of one protocol is shown of a reply that any model gave."""
