from segue.corpus.converter import Converter as Converter
from segue.corpus.jobs import Job as Job
from segue.corpus.notes import ShardNote as ShardNote
from segue.corpus.notes import read_notes as read_notes
from segue.corpus.rows import Reader as Reader
from segue.corpus.runs import convert_shard as convert_shard
from segue.corpus.shards import Shard as Shard
from segue.corpus.shards import plan as plan
from segue.corpus.summary import Summary as Summary
from segue.corpus.summary import merge as merge

__all__ = [
    "Converter",
    "Job",
    "Reader",
    "Shard",
    "ShardNote",
    "Summary",
    "convert_shard",
    "merge",
    "plan",
    "read_notes",
]
