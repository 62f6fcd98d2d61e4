"""What members of groups may use: language models, compaction policies and tools."""
