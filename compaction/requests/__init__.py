"""Make requests fit before they are sent, and after a provider refused them."""
