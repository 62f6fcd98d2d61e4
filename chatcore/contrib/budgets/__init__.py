"""What calls of language models used and cost, summed by day, and the budgets that bound it."""
