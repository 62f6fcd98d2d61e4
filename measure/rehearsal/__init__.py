"""A rehearsal of size: millions of generated messages, and the plans of the product's queries."""
