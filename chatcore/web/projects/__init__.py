"""The pages of projects, and what other pages show of them."""
