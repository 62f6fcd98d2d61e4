"""What a user may use: language models, compaction policies and tools.

Whoever looks one of these up for a user asks here; a test reads the sources and holds that.
"""
