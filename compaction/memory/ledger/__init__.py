"""The ledger of a session: read from its messages, stored by line, changed by users, and sent.

What a line is, and how one is recognized, is in `compaction/memory/core/ledger/`.
"""
