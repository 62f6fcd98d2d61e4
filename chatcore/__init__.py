"""The conversation: storage, turns, context, pages and APIs. It never imports compaction."""
