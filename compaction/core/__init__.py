"""The pure heart of compaction: data in, a proposal out. Standard library only; no clock, no log, no I/O, nothing mutated."""
