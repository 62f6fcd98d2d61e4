"""The REST API: one file a subject, each view makes one call of the domain."""
