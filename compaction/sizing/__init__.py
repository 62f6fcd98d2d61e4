"""Load what decides about a session's compaction, measure its next request, and fit its files."""
