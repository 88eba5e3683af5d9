"""The conformance kit: tests for the authors of protocols and of formats of stored histories.

    from segue.testing import check_protocol
    from my_package import RECORD

    def test_conformance():
        check_protocol(RECORD)

The kit needs no other package. Histories are generated from seeds (`segue.testing.histories`), and a failure names the
seed that reproduces it. A test with Hypothesis can draw the seeds itself and call the functions of `HISTORY_LAWS`.

A name is imported when it is first used, from the list in `__init__.pyi`: the plug-in of pytest is in this package,
and every run of pytest loads it.
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
