"""Remove credentials from what tools were given and what they returned.

The table is our own. `detect-secrets` 1.5 was tried: it returns values of single lines without
their places, so the body of a PEM block stays, and of `glpat-…` it returns the prefix; it misses
`sk-proj-…`, `sk-ant-…`, bearer tokens and unquoted `…_SECRET=`; its default rules report 5,294
secrets in 30,000 characters of plain prose, in 0.2 s; and its settings are global to the process.
"""

import re

PLACEHOLDER = "[credential removed]"
MIN_CHARS = 4  # a shorter value is no credential

# Words that providers put before their keys. Behind each a key has at least 16 characters.
_PREFIXES = (
    r"gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-|xox[abeoprs]-|xapp-\d-"
    r"|[srp]k_(?:live|test)_|whsec_|hf_|gsk_|r8_|pplx-|xai-|nvapi-|npm_|pypi-|dop_v1_|doo_v1_"
    r"|dckr_pat_|shp(?:at|ca|pa|ss)_|sntrys_|sntryu_|lin_api_|ntn_|hv[sbr]\.|ya29\.|tskey-"
    r"|AGE-SECRET-KEY-1|sbp_|figd_|glc_|glsa_|rubygems_|ATATT3|PMAK-|pat[A-Za-z0-9]{14}\."
)
_SECRET_NAME = re.compile(
    r"(?:api|access|secret|private|auth|signing|encryption|master|account|shared|subscription"
    r"|service|license|ssh|deploy)[_.-]?key(?:[_-]?id)?\Z|secret\Z|token\Z|passw(?:or)?d\Z"
    r"|passphrase\Z|passwort\Z|kennwort\Z|(?<![a-z])pwd\Z|credentials?\Z",
    re.IGNORECASE,
)
# Behind such a name, as a shell and a `.env` file have it, whatever follows is a secret.
_ENVIRONMENT_NAME = re.compile(
    r"(?:[A-Z0-9]+_)?(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?)"
    r"(?:_(?:ID|BASE|B64|BASE64|[0-9]+))?\Z"
)
# Possessive, so that long words without an end take no time.
_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{3,100}+)\\?[\"']?[ \t]{0,8}+(?P<sign>:|=>?)[ \t]{0,8}+"
)
_VALUE = re.compile(r"\\?[\"'](?P<value>[^\"'\\\n]+)|(?P<other>[^\s\"'\\;&|]++)")
_LINE_START = re.compile(r"(?:\A|\n|\\n)[ \t\"'-]*\Z")
_EXPRESSION = re.compile(r"[(\[{<$,]|[a-z_]\.[a-z_]")
_FORMS = [
    re.compile(
        r"(?P<value>-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]{0,20000}+-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|[A-Za-z0-9+/=\s\\]*+))"
    ),
    re.compile(rf"(?<![A-Za-z0-9])(?P<value>(?:{_PREFIXES})[\w.=-]{{16,}})"),
    re.compile(r"(?<![A-Za-z0-9-])(?P<value>sk-(?=[\w-]*\d)[\w-]{16,})"),
    re.compile(r"(?<![A-Za-z0-9])(?P<value>A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16})(?![A-Za-z0-9])"),
    re.compile(r"(?<![A-Za-z0-9])(?P<value>AIza[\w-]{30,}|SG\.[\w-]{16,}\.[\w-]{16,})"),
    re.compile(r"(?<![\w-])(?P<value>eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?)"),
    re.compile(r"(?<!\d)(?P<value>\d{8,10}:AA[\w-]{32,34})"),  # of bots of Telegram
    re.compile(
        r"\bbearer\s+(?P<value>(?=\S*\d)[\w.~+/=-]{8,})"
        r"|\bauthorization\\?[\"']?\s*[:=]\s*\\?[\"']?(?:basic|token|apikey)\s+"
        r"(?P<other>[\w.~+/=-]{6,})",
        re.IGNORECASE,
    ),
    re.compile(r"(?<=://)[^\s:/@\"'<>]{0,200}:(?P<value>[^\s/\"'<>]{1,200})@"),
    re.compile(
        r"[?&](?:access_token|api[_-]?key|key|token|sig|signature|client_secret|secret|password"
        r"|x-amz-signature|x-amz-security-token)=(?P<value>[^&\s\"'<>\\]{8,})",
        re.IGNORECASE,
    ),
    re.compile(
        r"--?(?:password|passwd|token|api-key|apikey|secret|client-secret|access-token)[= ]"
        r"\\?[\"']?(?P<value>[^\s\"'\\]{4,})"
    ),
    re.compile(r"(?:AccountKey|SharedAccessKey)=(?P<value>[\w+/=-]{16,})"),
]


def remove_credentials(text: str) -> str:
    """Return a text in which the values of keys, tokens, passwords and private keys are replaced.

    Only forms that are hardly ever anything else are known: a password in a sentence stays.
    """
    for form in _FORMS:
        text = form.sub(_replace_value, text)
    return _remove_assigned(text)


def has_credentials(text: str) -> bool:
    """Return whether a text has something that `remove_credentials` replaces."""
    return remove_credentials(text) != text


def _remove_assigned(text: str) -> str:
    """Replace what is given to the names of secrets."""
    parts: list[str] = []
    end = 0
    for name in _NAME.finditer(text):
        value = _VALUE.match(text, name.end())
        if name.start() >= end and value and _is_secret(text, name, value):
            start = value.start(value.lastgroup or 0)
            parts += (text[end:start], PLACEHOLDER)
            end = value.end(value.lastgroup or 0)
    return "".join((*parts, text[end:]))


def _is_secret(text: str, name: re.Match[str], value: re.Match[str]) -> bool:
    """Return whether a name is that of a secret and its value no code and no sentence."""
    secret = value[value.lastgroup or 0]
    if PLACEHOLDER.startswith(secret):
        return False
    if name["sign"] == "=" and _ENVIRONMENT_NAME.search(name["name"]):
        return True
    if not _SECRET_NAME.search(name["name"]) or len(secret) < MIN_CHARS:
        return False
    if value.lastgroup == "value" or any(map(str.isdigit, secret)):
        return not (value.lastgroup == "other" and _EXPRESSION.search(secret))
    if name["sign"] == ":" and not _LINE_START.search(
        text, max(0, name.start() - 20), name.start()
    ):
        return False
    return not _EXPRESSION.search(secret)


def _replace_value(match: re.Match[str]) -> str:
    name = "value" if match.group("value") is not None else "other"
    return _replace_group(match, name)


def _replace_group(match: re.Match[str], name: str) -> str:
    start, end = match.span(name)
    if PLACEHOLDER.startswith(match[name]) or match[name].startswith(PLACEHOLDER):
        return match[0]
    return match[0][: start - match.start()] + PLACEHOLDER + match[0][end - match.start() :]
