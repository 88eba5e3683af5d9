"""Calls of other programs: what a client sent is read, what it is answered is written; lines of batch files."""
