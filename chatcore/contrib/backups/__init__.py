"""Backups: one file with the database, the outputs of tools, and the keys.

`creation` writes one while the system runs, `restoration` puts one back, and each database has a
module of its own that copies it.
"""
