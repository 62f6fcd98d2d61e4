"""Memory: words that are kept, checks of what summaries say, and spans summarized once."""
