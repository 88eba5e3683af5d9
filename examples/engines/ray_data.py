"""Convert a folder of Parquet files with Ray Data."""

import sys

import ray

from segue.corpus import Converter


def run(source: str, target: str) -> None:
    """Convert the rows of all files; the output has one row for each row, in the same order."""
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    rows = ray.data.read_parquet(source)
    # Without max_retries, a row that ends its process is tried again without an end.
    convert = Converter(to="anthropic/claude-sonnet-4-5")
    rows.map_batches(convert, batch_format="pyarrow", batch_size=64, max_retries=2).write_parquet(target)


if __name__ == "__main__":
    run(*sys.argv[1:])
