"""Convert a folder of Parquet files with Daft."""

import sys

import daft
import pyarrow as pa

from segue.corpus import Converter

CONVERT = Converter(to="anthropic/claude-sonnet-4-5", column="body")
TYPE = daft.DataType.from_arrow_type(pa.struct(list(Converter.SCHEMA)))


@daft.func.batch(return_dtype=TYPE)
def convert(body: daft.Series) -> pa.Array:
    """Convert a column of JSON texts to one of structs."""
    made = CONVERT(pa.table({"body": body.to_arrow()}))
    return pa.StructArray.from_arrays([column.combine_chunks() for column in made.columns], fields=list(made.schema))


def run(source: str, target: str) -> None:
    """Convert the rows of all files."""
    rows = daft.read_parquet(f"{source}/*.parquet").select(convert(daft.col("body")).alias("made"))
    rows.select(*(daft.col("made").get(name).alias(name) for name in Converter.SCHEMA.names)).write_parquet(target)


if __name__ == "__main__":
    run(*sys.argv[1:])
