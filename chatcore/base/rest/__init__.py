"""Conventions of every REST view: problems, strict fields, pages, conditions, authentication.

A leaf: it knows nothing of conversations, so `compaction/api/` may import it too.
"""
