"""Cohere's v1 chat protocol for segue."""
