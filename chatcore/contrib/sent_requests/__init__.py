"""What the request of each answer has sent, in little room."""
