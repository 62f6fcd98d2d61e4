"""Credentials are removed from what tools were given and what they returned."""

import pytest

from textkit.credentials import PLACEHOLDER, remove_credentials

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nq1+/x==\n-----END RSA PRIVATE KEY-----"

PROTECTED_PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A0B\n\n"
    "4gsJZqQ8aaBBcc\n-----END RSA PRIVATE KEY-----"
)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("aws AKIAIOSFODNN7EXAMPLE in use", "AKIAIOSFODNN7EXAMPLE"),
        ("key sk-proj-abc123def456ghi789jkl0", "sk-proj-abc123def456ghi789jkl0"),
        ("key sk-ant-api03-abc123def456ghi789jkl0", "sk-ant-api03-abc123def456ghi789jkl0"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        ("github_pat_11ABCDEFG0abcdefghij_klmnop", "github_pat_11ABCDEFG0abcdefghij_klmnop"),
        ("glpat-abcdefghij1234567890", "glpat-abcdefghij1234567890"),
        ("xoxb-123456789012-abcdefghijkl", "xoxb-123456789012-abcdefghijkl"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSyA1234567890abcdefghijklmnopqrstuv"),
        ("sk_live_abcdefgh12345678", "sk_live_abcdefgh12345678"),
        (f"The file:\n{PEM}\nends.", "MIIEpAIBAAKCAQEA7bq"),
        (PEM.rpartition("\n")[0], "q1+/x=="),
        ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("postgres://app:hunter22@db.internal:5432/app", "hunter22"),
        ("redis://:p4ss@cache", "p4ss"),
        ("GET https://x.example/a?api_key=abcdef123456&b=1", "abcdef123456"),
        ("STRIPE_SECRET=abc123", "abc123"),
        ("export MY_API_KEY='two words'", "two words"),
        ('DB_PASSWORD="hunter 2"', "hunter 2"),
        ("SECRET_KEY_BASE=0f1e2d3c", "0f1e2d3c"),
        ('{"apiKey": "abcd-efgh"}', "abcd-efgh"),
        ('{"command": "export A_TOKEN=xyz789 && run"}', "xyz789"),
        ('{"content": "A_KEY=abc\\nB_TOKEN=\\"def\\""}', "abc"),
        ('{"content": "A_KEY=abc\\nB_TOKEN=\\"defg\\""}', "defg"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("password: hunter22", "hunter22"),
        ("  client_secret: 'abc-def'", "abc-def"),
        ("mysql --password hunter22 app", "hunter22"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def", "eyJzdWIiOiIxMjM0In0"),
        (PROTECTED_PEM, "4gsJZqQ8aaBBcc"),
        (PROTECTED_PEM.rpartition("\n")[0], "4gsJZqQ8aaBBcc"),
        ("Private-Lines: 1\nAAABAQCabcdefghijklmnop\nPrivate-MAC: 01", "AAABAQCabcdefghijklmnop"),
        ("https://hooks.slack.com/services/T0A/B0E/abcdEFGHijklMNOP", "abcdEFGHijklMNOP"),
        ("https://discord.com/api/webhooks/12345/abcdEFGHijklMNOP", "abcdEFGHijklMNOP"),
        ("git clone https://7f3ab1299fd04e1c8a55@git.example/x.git", "7f3ab1299fd04e1c8a55"),
        ("curl -s -u admin:hunter22 https://api.example", "hunter22"),
        ("sshpass -p hunter22 ssh host", "hunter22"),
        ("mysql -u root -phunter22 app", "hunter22"),
        ("machine api.example login joe password hunter22", "hunter22"),
        ("Set-Cookie: sessionid=9f8e7d6c5b4a3928; HttpOnly", "9f8e7d6c5b4a3928"),
        ('{"auths": {"r.example": {"auth": "dXNlcjpwYXNz"}}}', "dXNlcjpwYXNz"),
        ("//registry.example/:_auth=dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ('[{"name": "STRIPE_API_KEY", "value": "abc-def-ghi"}]', "abc-def-ghi"),
        ("- name: DB_PASSWORD\n  value: hunter-two", "hunter-two"),
        ("<dbPassword>hunter22</dbPassword>", "hunter22"),
        ("define('DB_PASSWORD', 'hunter two');", "hunter two"),
        ("    client-key-data: LS0tLS1CRUdJTg==", "LS0tLS1CRUdJTg"),
        ("jdbc:oracle:thin:scott/hunter22@//host:1521/x", "hunter22"),
        ("GOCSPX-aB3dE5gH7jK9mN1pQ3sT5vW7", "GOCSPX-aB3dE5gH7jK9mN1pQ3sT5vW7"),
        ("dapi0123456789abcdef0123456789abcdef", "dapi0123456789abcdef"),
        ("pul-" + "0123456789abcdef" * 2 + "01234567", "0123456789abcdef"),
        ("FlyV1 fm2_" + "lJPE/x9+" * 4 + ",fm2_" + "kL7/q==", "x9+"),
        ("Contraseña: Verano2024", "Verano2024"),
    ],
)
def test_a_credential_is_removed(text: str, secret: str) -> None:
    assert secret in text
    cleaned_text = remove_credentials(text)
    assert secret not in cleaned_text
    assert PLACEHOLDER in cleaned_text
    assert remove_credentials(cleaned_text) == cleaned_text


def test_names_and_neighbors_stay() -> None:
    text = "PORT=8000\nSTRIPE_SECRET=abc123\nHOST=db.internal\n"
    assert remove_credentials(text) == text.replace("abc123", PLACEHOLDER)


@pytest.mark.parametrize(
    "text",
    [
        "The key to the house hangs beside the door.",
        "max_tokens=2048, tokens: 12",
        "primary_key = models.AutoField()",
        "token = read_token(path)",
        "password = request.data['password']",
        "http://localhost:8080/users/@me",
        "mail ada@example.org at 10:30",
        "class sk-loading-spinner-large",
        "sort_key: name",
        "The secret: never give up.",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "commit 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert remove_credentials(text) == text


def test_a_long_text_without_spaces_is_read_once() -> None:
    text = "abc:def:" * 60_000  # each value would go to the end of the text
    assert remove_credentials(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "db.example.com:5432:shop:admin:{0}",
        "*:*:*:app:{0}",
        "| user | password |\n|---|---|\n| ada | {0} |\n| bob | {0}2 |",
        "user,password,role\nada,{0},admin\nbob,{0}2,user",
        "id\tapi_token\n1\t{0}",
        " username |  password  \n----------+-----------\n ada      | {0}\n",
        "+-----+-------+\n| user | passwd |\n+-----+-----+\n| ada  | {0} |\n+------+",
        "AWS Access Key ID [None]: x\nAWS Secret Access Key [None]: {0}",
        "machine x login y account z password {0}",
        "default login anonymous password {0}",
        "| name | token |\n|---|---|\n| ada | {0} |",
        '[{{"token": "{0}", "user": "ada"}}]',
        "secret,owner\n{0},ada",
    ],
)
def test_a_credential_is_removed_where_only_its_place_tells(text: str) -> None:
    secret = "Zq8vRt2xPw"
    cleaned = remove_credentials(text.format(secret))
    assert secret not in cleaned
    assert PLACEHOLDER in cleaned
    assert remove_credentials(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "Use a password, please\nthen call Ada, my friend",
        "cat log | grep token\nps | sort",
        "src/app.py:120:class:Price:rates",
        "name,price\nrack,840",
        "12:30:45:01:20",
        "",
        # Names of secrets that are names of other things too, with plain words behind them.
        "| token | count |\n|---|---|\n| running | 12 |\n| well-known | 3 |",
        "token,tag\nAda,NNP\nwrote,VBD\nschöne,ADJ",
        " key  | secret \n------+--------\n door | under the mat\n",
        "id\ttoken\n1\tbefore\n2\tКиев",
        '[{"token": "running", "lemma": "run"}, {"token": "Straße"}]',
        'fetch(url, {"credentials": "same-origin"})',
        "secret: database-login",
        "<token>running</token>",
    ],
)
def test_what_looks_like_a_table_or_a_line_of_places_stays(text: str) -> None:
    assert remove_credentials(text) == text
