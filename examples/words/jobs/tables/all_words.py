"""How often each word was said or stands in the log: two topics, shown as one."""

from twinlake import Union

TABLE = Union(name="all_words", of=("word_count", "line_words"))
