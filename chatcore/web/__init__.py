"""The pages of the chat in the browser: views, forms, sign-in and translations.

The templates are in templates/chatcore/, the scripts in chatcore/static/chatcore/.
"""
