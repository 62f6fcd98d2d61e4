"""HTTP requests to addresses that users or models name, never into private networks."""
