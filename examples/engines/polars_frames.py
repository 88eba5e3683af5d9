"""Convert a folder of Parquet files with Polars."""

import sys

import polars as pl

from segue.corpus import Converter


def run(source: str, target: str) -> None:
    """Convert the rows of all files."""
    convert = Converter(to="anthropic/claude-sonnet-4-5")
    rows = pl.read_parquet(f"{source}/*.parquet")
    made = pl.concat(pl.from_arrow(convert(part.to_arrow())) for part in rows.iter_slices(64))
    made.write_parquet(f"{target}/all.parquet")


if __name__ == "__main__":
    run(*sys.argv[1:])
