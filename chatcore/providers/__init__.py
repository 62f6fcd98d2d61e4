"""Language model providers: one module a protocol, its wire format beside it.

Only this package imports the providers' SDKs.
"""
