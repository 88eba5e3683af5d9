"""Convert a folder of Parquet files with Spark."""

import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from segue.corpus import Converter

SCHEMA = "id string, request string, error string, changes string, messages int, tokens long"


def run(source: str, target: str, master: str = "local[2]") -> None:
    """Convert the rows of all files."""
    spark = SparkSession.builder.master(master).getOrCreate()
    convert = Converter(to="anthropic/claude-sonnet-4-5")

    def convert_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from map(convert, batches)

    spark.read.parquet(source).mapInArrow(convert_batches, SCHEMA).write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    run(*sys.argv[1:])
