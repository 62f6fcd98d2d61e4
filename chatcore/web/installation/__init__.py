"""What makes the pages an app that can be installed: a manifest, a service worker, a page in words.

The service worker keeps one page, which says that the server cannot be reached. It never stores
anything of a chat.
"""
