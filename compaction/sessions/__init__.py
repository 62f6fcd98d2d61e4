"""What compaction reads of Chatcore's sessions, and what it changes of them."""
