"""The conformance suite: histories that real conversations contain, sent to any server or gateway, and what arrived.

    from segue.testing.conformance.running import run_suite

The cases are data, `cases/WIRE.json`, with `cases/schema.json`; programs in other languages can run them too.
"""
