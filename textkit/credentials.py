"""Remove credentials from what tools were given and what they returned.

The table is our own. `detect-secrets` 1.5 was tried: it returns values of single lines without
their places, so the body of a PEM block stays, and of `glpat-…` it returns the prefix; it misses
`sk-proj-…`, `sk-ant-…`, bearer tokens and unquoted `…_SECRET=`; its default rules report 5,294
secrets in 30,000 characters of plain prose, in 0.2 s; and its settings are global to the process.
"""

import re
from collections.abc import Iterable, Iterator

PLACEHOLDER = "[credential removed]"
MIN_CHARS = 4  # a shorter value is no credential
MIN_BARE_CHARS = 8  # of one that is replaced wherever it stands

# Words that providers put before their keys. Behind each a key has at least 16 characters.
_PREFIXES = (
    r"gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-|xox[abeoprs]-|xapp-\d-"
    r"|[srp]k_(?:live|test)_|whsec_|hf_|gsk_|r8_|pplx-|xai-|nvapi-|npm_|pypi-|dop_v1_|doo_v1_"
    r"|dckr_pat_|shp(?:at|ca|pa|ss)_|sntrys_|sntryu_|lin_api_|ntn_|hv[sbr]\.|ya29\.|tskey-"
    r"|AGE-SECRET-KEY-1|sbp_|figd_|glc_|glsa_|rubygems_|ATATT3|PMAK-|pat[A-Za-z0-9]{14}\."
    r"|GOCSPX-|1//0|HRKU-|sq0(?:atp|csp|idp)-|dapi(?=[0-9a-f]{32})|key-(?=[0-9a-f]{32})"
    r"|[A-Za-z0-9]{14}\.atlasv1\.|pscale_(?:tkn|pw|oauth)_|phx_|eyJrIjoi|pul-(?=[0-9a-f]{40})"
)
_SECRET_NAME = re.compile(
    r"(?:api|access|secret|private|auth|signing|encryption|master|account|shared|subscription"
    r"|service|license|ssh|deploy)[_.-]?key(?:[_-]?id)?\Z|secret\Z|token\Z|passw(?:or)?d\Z"
    r"|passphrase\Z|passwort\Z|kennwort\Z|(?<![a-z])pwd\Z|credentials?\Z|contraseña\Z|senha\Z"
    r"|wachtwoord\Z|hasło\Z|secret_key_base\Z|key[_-]data\Z|(?<![a-z])_auth\Z",
    re.IGNORECASE,
)
# Names of much else too: of the parts of a text, of a choice in a configuration.
_VAGUE_NAME = re.compile(r"(?:token|secret|credentials?)\Z", re.IGNORECASE)
_PLAIN_WORDS = re.compile(r"(?:(?!\w*[a-z][A-Z])[^\W\d_]++[ '’/_.!?-]*+){1,20}")
_SENSITIVE_WORD = r"(?:password|passwd|secret|token|api_?key|secret_?key|access_?key|private_?key)"
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
# A table's line of names, and the line below it.
_SEPARATORS = ("|", "\t", ";", ",")
_COLUMN_NAME = re.compile(r"\A\s*+[\"'*`]*+(?:[A-Za-z][\w .-]{0,40})?[\"'*`]*+\s*+\Z")
_COLUMN_WORD = re.compile(r"[\"']?[A-Za-z][\w.-]{0,40}[\"']?\s*\Z")  # in no sentence
_SECRET_COLUMN = re.compile(
    r"passw|secret|token|passphrase|credential|key|pwd|passwort|contraseña|senha|hasło",
    re.IGNORECASE,
)
_RULER = re.compile(r"[\s|+:=-]+\Z")
_FORMS = [
    re.compile(
        r"(?P<value>-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----)){0,20000}+-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:[\s\\n]*+[A-Z][A-Za-z-]{2,30}: [^\n\\]{0,200})*+[A-Za-z0-9+/=\s\\]*+))"
    ),
    re.compile(
        r"(?<=Private-Lines: )(?P<value>\d+(?:(?:\n|\\n)[A-Za-z0-9+/=]{20,})++)"  # of PuTTY
    ),
    re.compile(rf"(?<![A-Za-z0-9])(?P<value>(?:{_PREFIXES})[\w.=-]{{16,}})"),
    re.compile(r"(?<![A-Za-z0-9])(?P<value>fm(?:1[ar]|2)_[\w.+/=,-]{16,})"),  # of Fly.io
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
    re.compile(
        r"\bauthorization\\?[\"']?\s*[:=]\s*\\?[\"']?digest\s+(?P<value>[^\n]{6,500})",
        re.IGNORECASE,
    ),
    # What signs a browser in; one that is short is a choice of the page's look.
    re.compile(
        r"\b(?:set-)?cookie\\?[\"']?:\s*\\?[\"']?(?P<value>[^\s=;\"'\\]{1,60}=[^\n\"'\\]{12,})",
        re.IGNORECASE,
    ),
    re.compile(r"(?<=://)[^\s:/@\"'<>]{0,200}:(?P<value>[^\s/\"'<>]{1,200})@"),
    # A token in the place of the name of a user.
    re.compile(r"(?<=://)(?P<value>(?=[^\s:/@]*\d)(?=[^\s:/@]*[A-Za-z])[\w.~-]{16,200})@"),
    re.compile(
        r"://(?:hooks\.slack\.com/(?:services|workflows)|(?:\w+\.)?discord(?:app)?\.com/api/webhooks"
        r"|[\w.-]+\.webhook\.office\.com/webhookb2|api\.telegram\.org/bot)"
        r"/?(?P<value>[^\s\"'<>\\)]{16,})"
    ),
    re.compile(r"\bjdbc:oracle:\w+:[^\s/@]{1,80}/(?P<value>[^\s@]{1,80})@"),
    re.compile(
        r"\bcurl\b[^\n]{0,300}?\s(?:-u|--user|-U|--proxy-user)[= ]?\\?[\"']?[^\s:\"'\\]{1,80}:"
        r"(?P<value>[^\s\"'\\]+)"
    ),
    re.compile(r"\bsshpass\s+-p\s*\\?[\"']?(?P<value>[^\s\"'\\]+)"),
    re.compile(r"\bmysql(?:dump|admin)?\b[^\n|]{0,200}?\s-p(?P<value>[^\s\"'\\]{3,})"),
    re.compile(  # of a `.netrc`
        r"\b(?:machine\s+\S+|default)(?:\s+(?:login|account)\s+\S+){0,3}"
        r"\s+password\s+(?P<value>\S+)"
    ),
    re.compile(  # of a `.pgpass`: host, port, database, user
        r"^[^\s:#/]{1,200}:(?:\d{3,5}|\*):[^\s:]{1,80}:[^\s:]{1,80}:(?P<value>[^\s:]{3,200})$",
        re.MULTILINE,
    ),
    # What `aws configure` and others ask for, with what stood there before in brackets.
    re.compile(
        r"\b(?:secret|password|token|passphrase|api key|access key)(?: (?:access )?key| id)?"
        r"(?: \[[^\]\n]{0,40}\])?: (?P<value>(?=\S*\d)\S{8,200})$",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(r"\bsetx\s+\w*(?:KEY|SECRET|TOKEN|PASSWORD)\s+(?P<value>\S+)", re.IGNORECASE),
    # Names of secrets whose values stand in a member, an element or an argument of their own.
    re.compile(
        rf"[\"']?(?:name|key)\\?[\"']?\s*[:=]\s*\\?[\"']?\w*{_SENSITIVE_WORD}\\?[\"']?,?(?:\s|\\n)*"
        r"\\?[\"']?value\\?[\"']?\s*[:=]\s*\\?[\"']?(?P<value>[^\s\"'\\,}}<>]{4,})".replace(
            "}}", "}"
        ),
        re.IGNORECASE,
    ),
    re.compile(
        rf"<(?!(?:token|secret)>\s*[a-z]+<)(?P<tag>\w*{_SENSITIVE_WORD})>\s*(?P<value>[^<\s][^<\n]{{2,200}})</(?P=tag)>",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\bdefine\(\s*\\?[\"']\w*{_SENSITIVE_WORD}\\?[\"']\s*,\s*\\?[\"'](?P<value>[^\"'\\\n]+)",
        re.IGNORECASE,
    ),
    re.compile(r"\\?\"auth\\?\"\s*:\s*\\?\"(?P<value>[A-Za-z0-9+/]{8,}={0,2})\\?\""),  # of Docker
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
    return _remove_assigned(_replace_places(text, _find_columns(text)))


def list_credentials(text: str) -> set[str]:
    """Return the values in a text that `remove_credentials` replaces and that are no plain words.

    They may stand elsewhere without anything that tells what they are.
    """
    values = {
        match["value"] or match["other"] if "other" in form.groupindex else match["value"]
        for form in _FORMS
        for match in form.finditer(text)
    }
    values.update(text[start:end] for start, end in _find_assigned(text))
    values.update(text[start:end] for start, end in _find_columns(text))
    return {
        value for value in values if len(value) >= MIN_BARE_CHARS and any(map(str.isdigit, value))
    }


def remove_unsaid_credentials(summary: str, source: str) -> str:
    """Return a summary without the credentials that its source does not have."""
    for value in list_credentials(summary):
        if value not in source:
            summary = summary.replace(value, PLACEHOLDER)
    return summary


def has_credentials(text: str) -> bool:
    """Return whether a text has something that `remove_credentials` replaces."""
    return remove_credentials(text) != text


def _remove_assigned(text: str) -> str:
    """Replace what is given to the names of secrets."""
    return _replace_places(text, _find_assigned(text))


def _replace_places(text: str, places: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    end = 0
    for start, next_end in places:
        parts += (text[end:start], PLACEHOLDER)
        end = next_end
    return "".join((*parts, text[end:]))


def _find_columns(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of the columns of secrets stand in the tables of a text."""
    separator, start = "", 0
    columns: tuple[int, ...] = ()
    names: list[str] = []
    lines = text.splitlines(keepends=True)
    for line, next_line in zip(lines, [*lines[1:], ""], strict=False):
        cells = line.rstrip("\r\n").split(separator) if columns else []
        if columns and len(cells) <= columns[-1] and not _RULER.match(line):
            columns = ()
        for column in columns if len(cells) > (columns or (0,))[-1] else ():
            value = cells[column].strip(" \"'")
            if _may_be_value(names[column], value) and not value.startswith((PLACEHOLDER, "---")):
                place = start + len(separator.join(cells[:column])) + bool(column)
                place += cells[column].index(value)
                yield place, place + len(value)
        if not columns and _SECRET_COLUMN.search(line):
            separator = next((sign for sign in _SEPARATORS if sign in line), "")
            columns = _list_secret_columns(line, separator, next_line)
            names = [name.strip(" \"'\r\n*`") for name in line.split(separator or None)]
        start += len(line)


def _list_secret_columns(line: str, separator: str, next_line: str) -> tuple[int, ...]:
    """Return the columns of secrets that a table's line of names has; none of any other line."""
    names = line.split(separator) if separator else []
    form = _COLUMN_WORD if separator in ",;" else _COLUMN_NAME
    is_ruled = separator != "|" or bool(_RULER.match(next_line))
    if not (is_ruled and all(map(form.match, names))):
        return ()
    places = range(len(names))
    return tuple(each for each in places if _SECRET_NAME.search(names[each].strip(" \"'\r\n*`")))


def _find_assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values stand that are given to the names of secrets."""
    end = 0
    for name in _NAME.finditer(text):
        if name.start() < end or not _names_secret(name["name"]):
            continue  # before its value is read, which may be all of the text
        value = _VALUE.match(text, name.end())
        if value and _is_secret(text, name, value):
            end = value.end(value.lastgroup or 0)
            yield value.start(value.lastgroup or 0), end


def _may_be_value(name: str, value: str) -> bool:
    """Return whether a value may be the secret of that name: plain words behind some are none."""
    is_plain = bool(_VAGUE_NAME.match(name) and _PLAIN_WORDS.fullmatch(value))
    return len(value) >= MIN_CHARS and not is_plain


def _names_secret(name: str) -> bool:
    return bool(_ENVIRONMENT_NAME.search(name) or _SECRET_NAME.search(name))


def _is_secret(text: str, name: re.Match[str], value: re.Match[str]) -> bool:
    """Return whether a name is that of a secret and its value no code and no sentence."""
    secret = value[value.lastgroup or 0]
    if PLACEHOLDER.startswith(secret):
        return False
    if name["sign"] == "=" and _ENVIRONMENT_NAME.search(name["name"]):
        return True
    if not (_SECRET_NAME.search(name["name"]) and _may_be_value(name["name"], secret)):
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
