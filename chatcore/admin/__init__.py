"""The admin pages of the conversation; Django finds them by importing this package."""

from chatcore.admin import sessions as sessions
