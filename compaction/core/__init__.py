"""The decisions of compaction as pure functions over plain data.

Nothing here does I/O: no Django, clock, log or network. `pipeline.run` is the way in.
"""
