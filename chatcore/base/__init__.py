"""What several packages need and Django has not; it knows nothing of the conversation."""
