"""What calls of language models cost: recorded as they end, summed, and held to budgets.

Prices are those of the registry at the time of the call. Nothing here calls a model.
"""
