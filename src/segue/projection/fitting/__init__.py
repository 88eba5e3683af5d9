"""Fitting: shorten and leave out the oldest part of a projected conversation, so that it fits the target's window.

`plan` holds the limits, `sizes` counts the messages, `fold` decides where the cuts are, `shortening` writes shortened
messages, and `fit` applies the cuts and reports them. The stored conversation is never changed: for a larger window
everything is there again.
"""
