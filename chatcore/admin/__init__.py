"""The admin: its site and its look, and the pages of the conversation, one file a subject.

`pages` imports all of them. This package imports none, because the settings ask it for the look.
"""
