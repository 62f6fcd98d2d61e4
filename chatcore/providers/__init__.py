"""Language model providers: one module a protocol, its wire format beside it.

Only this room imports the providers' SDKs.
"""
