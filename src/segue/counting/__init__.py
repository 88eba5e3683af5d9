"""Counting: estimates how many tokens a request takes, from data about tokenizers and providers; no I/O, no vocabulary.

`tokenizers` counts a text, `families` holds what a provider adds to it, `media` the cost of images and documents, and
`counter` joins them for one model.
"""
