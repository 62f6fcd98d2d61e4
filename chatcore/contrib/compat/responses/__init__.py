"""Open Responses: `/v1/responses` and `/v1/conversations`, a thin layer over sessions and turns.

Items come in and become messages; the messages of an answer go out as items.
"""
