"""Write a corpus for benchmarks and acceptance tests, the same bytes on every machine.

python benchmarks/corpus.py agent 60 work/agent.jsonl       60 MB of agent traces, 40 to 60 messages each
python benchmarks/corpus.py chat 20 work/chat.jsonl         20 MB of short chats
python benchmarks/corpus.py bad 1000 work/bad.jsonl         1,000 lines, some of which cannot be converted
python benchmarks/corpus.py split work/agent.jsonl work/in 14   the lines of a file in 14 files
"""

from __future__ import annotations

import sys
from pathlib import Path

from corpus_lines import agent_lines, bad_lines, chat_lines, split, write_lines


def main(arguments: list[str]) -> None:
    """Write what the arguments ask for."""
    match arguments:
        case ["agent", size, path]:
            write_lines(agent_lines(), float(size), Path(path))
        case ["chat", size, path]:
            write_lines(chat_lines(), float(size), Path(path))
        case ["bad", lines, path]:
            Path(path).write_bytes(b"\n".join(bad_lines(int(lines))) + b"\n")
        case ["split", path, folder, parts]:
            split(Path(path), Path(folder), int(parts))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
