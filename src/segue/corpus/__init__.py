"""Corpora: conversations by the million, in files and folders, in columns, and in batch files of providers.

    from segue.corpus import Converter

    convert = Converter(to="anthropic/claude-sonnet-4-5")
    requests = convert(table)  # a pyarrow.Table, a pyarrow.RecordBatch, or a dict of columns

`segue convert FOLDER -o FOLDER` does the same for files. Names are imported when they are first used; pyarrow, fsspec
and zstandard (the extra `corpus`) only for data that needs them.
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
