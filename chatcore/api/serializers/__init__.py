"""What the REST API shows of the stored rows, and what it accepts for them."""
