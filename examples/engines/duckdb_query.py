"""Convert the result of a query of DuckDB."""

import sys

import duckdb
from pyarrow import parquet

from segue.corpus import Converter


def run(source: str, target: str) -> None:
    """Convert the rows of all files."""
    convert = Converter(to="anthropic/claude-sonnet-4-5")
    files = duckdb.read_parquet(f"{source}/*.parquet", filename=True, file_row_number=True)
    rows = files.order("filename, file_row_number").select("body")
    with parquet.ParquetWriter(f"{target}/all.parquet", Converter.SCHEMA) as writer:
        for batch in rows.to_arrow_reader(64):
            writer.write_batch(convert(batch))


if __name__ == "__main__":
    run(*sys.argv[1:])
