"""The ledger: rules, preferences, decisions, commitments and exact values, word for word.

Lines are recognized in what a user says, without a model: `recognition` finds them, `merging`
lets a newer line supersede its twin, and `rendering` writes them into a request.
"""
