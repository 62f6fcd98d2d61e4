"""Keep django-q2's cluster at work. Only this and `compaction.runs.tasks` import django_q."""
