"""Tools that the model can call and this process runs, and how much of their output is stored.

Each tool is one file; copy one and list it in `registry.py` to add another.
"""
