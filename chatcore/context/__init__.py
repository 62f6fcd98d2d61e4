"""What a request sends of a session: live messages, the summary block, and their revisions."""
