"""The conversation: storage, turns, context, pages and APIs. It never imports compaction."""

import chatcore.base.moved_modules  # noqa: F401
