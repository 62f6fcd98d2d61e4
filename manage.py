#!/usr/bin/env python
"""`python manage.py X` is `chatcore X`."""

from chatcore.command_line import main

if __name__ == "__main__":
    main()
