"""Convert a data set with the library `datasets`."""

import sys

from datasets import load_dataset

from segue.corpus import Converter


def run(source: str, target: str, processes: int = 2) -> None:
    """Convert the rows of all files."""
    rows = load_dataset("parquet", data_files=f"{source}/*.parquet", split="train").with_format("arrow")
    convert = Converter(to="anthropic/claude-sonnet-4-5")
    made = rows.map(convert, batched=True, batch_size=64, num_proc=processes, remove_columns=rows.column_names)
    made.to_parquet(f"{target}/all.parquet")


if __name__ == "__main__":
    run(*sys.argv[1:])
