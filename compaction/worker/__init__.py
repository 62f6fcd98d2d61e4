"""The processes that execute queued runs, and what keeps them working.

Only this room imports django_q. Each module says what of it is there for django-q2's sake, and why.
"""
