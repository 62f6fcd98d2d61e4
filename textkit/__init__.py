"""What is known of the words of languages, for all who read texts. It imports nothing of ours."""
