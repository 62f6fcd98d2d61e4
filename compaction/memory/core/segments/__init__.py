"""Frozen summaries: the segments that were written of spans of messages, and how they are composed.

A segment is never summarized again. What the model sees is composed of segments, sentence by
sentence.
"""
