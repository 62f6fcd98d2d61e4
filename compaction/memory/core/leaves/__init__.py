"""Frozen summaries: the leaves that were written of spans of messages, and how they are composed.

A leaf is never summarized again. What the model sees is composed of leaves, sentence by sentence.
"""
