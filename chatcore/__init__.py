"""The conversation: storage, turns, context, the web pages and the APIs. It never imports compaction."""
