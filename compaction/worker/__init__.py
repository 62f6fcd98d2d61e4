"""The queue's tasks, and what keeps django-q2's cluster at work. Only this imports django_q."""
