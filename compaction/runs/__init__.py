"""One compaction from its request to its end: request, claim, execute, install, end.

Read `engine` first; `lifecycle` explains the states of a run, `leases` who may work on one.
"""
