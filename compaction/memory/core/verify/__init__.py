"""Whether a summary is true: compare what it says with the messages that it replaces.

Nothing here calls a model. A check finds sentences that no message supports, `repair` removes them
and adds what must not be lost, and `extract` writes a text where no summary could be written.
"""
