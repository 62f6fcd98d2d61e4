#!/usr/bin/env python
"""`python manage.py X` is `chatcore X`."""

from chatcore.__main__ import main

if __name__ == "__main__":
    main()
