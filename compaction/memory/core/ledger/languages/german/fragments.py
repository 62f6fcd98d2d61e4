"""Parts of patterns that German uses in more than one place: alternations."""

LANGUAGE_NAMES = (
    r"englisch|deutsch|französisch|spanisch|italienisch|niederländisch|portugiesisch|polnisch"
    r"|russisch|türkisch|arabisch|chinesisch|japanisch|schwedisch|dänisch|griechisch|ukrainisch"
    r"|latein|koreanisch"
)
