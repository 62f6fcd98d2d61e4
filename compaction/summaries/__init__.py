"""How a summary is written: the prompt, the calls, the checks, and the structured state.

Nothing here knows how runs are claimed or ended; `summarizer` is given what it needs of that.
"""
