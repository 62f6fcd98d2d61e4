"""What calls of language models cost, told to apps as they begin and end.

Prices are those of the registry at the time of the call. Nothing here calls a model.
"""
