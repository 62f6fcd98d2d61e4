"""What Chatcore adds to the drivers of databases.

SQLite's writers of a process take turns, long work is written in short transactions, and a database
that is away, locked or full is told from an error of ours.
"""
