"""Requests: a history and a model become what is sent, and what is sent is checked before it goes."""
