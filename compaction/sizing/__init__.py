"""Load what decides about a session's compaction, and measure its next request in tokens."""
