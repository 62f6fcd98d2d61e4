"""The page about providers: what each family refuses, and what comes of every situation."""

from collections.abc import Collection

from tests.support.family_stage import NEED_TOOLS, SITUATIONS
from tests.support.strict_servers import FAMILIES, Family

INTRODUCTION = """\
# Providers

Any server of OpenAI's chat completions or of Anthropic's Messages can be a provider. Their rules
differ and contradict each other, so the last step before a request is sent brings any history into
a form that all take: one system text; the user begins, and roles alternate; each call with its
result, and no result without its call; ids of nine letters and digits, the same in each request;
no null, and no empty text; calls told in words where a request has no tools. A short answer,
"(The answer was stopped.)", stands between the result of a tool and the user's next words where a
turn broke off. What is stored stays as it came; `context/preview` shows what is sent.

What only some servers want is found by the address and the model's name
(`chatcore/providers/dialects.py`), or learned from a refusal: reasoning with every call (DeepSeek,
Kimi, GLM, MiniMax), no unknown fields (Mistral, Groq, OpenAI, Azure), a signature for each step
(Gemini), one call at a time (Llama 3), simple schemas of tools (Gemini, Kimi), the number of
images. A provider's option `dialect` sets single fields of it, for example
`{"dialect": {"reasoning": "all"}}`; the fields are those of the class `Dialect`.

A field that a server does not know is learned the same way: it is in the list `without`, and
`max_tokens_field` is the name of the limit of an answer (`max_tokens` or `max_completion_tokens`).
With `stream` in that list answers come in one piece. A refusal in words that nobody knows is
followed by the same request, and if that is refused too by others that leave out one parameter,
several, or ask for a shorter answer, until one of them is answered; at most eleven, which are
not paid for, and only while the server has not answered a request with the same ones before. A
number is then left out with this value alone (`without_values`), and its name once two of its
values were refused. A turn's notices name the parameters that are left out. Those that decide what
an answer is (`response_format`, `tool_choice`, `stop`) are left out only where a refusal names them.
The most tokens that a model writes is taken from the refusal of a larger number (`output_limit`).
How much room a summary needs with the thoughts of its model (`thought_room`), the room that they
took whole where it can have no more (`thoughts_exceed`: then it writes no summaries for a day but
those that are asked for by hand), how much of a conversation it takes in one call
(`summary_chunk_tokens`), that it takes no temperature of ours (`summary_temperature`), that it
calls tools where it is to summarize the talk that it was sent (`summary_in_talk`) or has no tools
at all (`summary_without_tools`: then it is told so, or writes no summaries for a day), and that it
cannot quote what is to last (`summary_names_lines`), is learned from the calls that write
summaries. A summary call that is refused in words that nobody knows is followed by short ones with
a harmless message, which show whether the temperature, the room of the answer, one message or their
length is refused.
Fields and numbers are tried again once a day, and after the button Test; an option that an
operator sets goes before them, and another number of output tokens at the model voids
`output_limit`.
A thought whose opening tag the chat template writes (DeepSeek R1 behind a server that does not know
its marks) is part of the first answer; the next ones are read as thought and answer
(`{"dialect": {"begins_thinking": true}}`). What was learned stands in the provider's row, in the
field Learned, by model; there and among the options it can be changed, and a new address makes it
void. Only what helped is kept. Thoughts that stood in tags come back with an answer only where the
model wants them (MiniMax; `{"dialect": {"has_tagged_thoughts": true}}`). A server of
Anthropic's protocol that refuses answers without thoughts, as DeepSeek's does, gets them with each
answer, unsigned (`needs_thoughts`).

Images above 3.7 MB are made smaller before they are sent, and so are those above 2,000 pixels a
side where a request has more than twenty. A tool whose description a server refuses by name is left
out, and the turn's notices say so. An earlier message that was refused for itself, as by a filter,
is left out if the next request is answered without it; edit it to send it again.

A provider's options are named in `models_registry/provider_options.py`; one that is unknown,
misspelt or of another type is refused by its name. `headers`, `query` and `body` are sent with
each request, `tool_body` with those that offer tools. `system_role: false` puts the system text
before the user's first words, `control_tokens` makes the marks of a chat template harmless in
what people write, and `without_tools` has marks of tools that the server has refused. The others
stand above and in [developers](developers.md).

**No real server was reached for this page.** `./bin/test --slow` writes it: each family is a server
of our own that refuses what the documents (doc), the source (code) or users (report) say that the
real one refuses. A real one may be milder or stricter.
"""

RECIPE = """\
## A new protocol

1. Copy `chatcore/providers/openai.py` or `anthropic.py` to a module of the protocol's name. Its
   class says what the protocol can do (`Capabilities`), which parameters users may set, and where
   an empty address leads; it turns a request into calls, reads the answer, and lists the models.
   `PROVIDER` at its end is what the rest asks. A protocol without an SDK of its own sends by
   OpenAI's, as `stream_answer` does for any path and body: keys, proxies, time limits, retries and
   errors are then those of the others.
2. Add the name of the module to `Provider.Protocol` in `models_registry/models.py`. The admin, the
   page for models, the setup document and `chatcore add_provider` offer it from then on; it needs
   no migration.
3. Name options that are its own in `models_registry/provider_options.py`.

That is all outside the module, unless the words of its refusals are unknown (`overflow.py`,
`error_mapping.py`) or its models reason (`models_registry/reasoning.py`).
"""


def render_page(failures: Collection[tuple[str, str]]) -> str:
    """Return the page, given the pairs of family and situation that failed."""
    return "\n".join(
        [
            INTRODUCTION,
            "## What each family refuses",
            "",
            "Beside what every server of the protocol refuses: calls without results, results"
            " without calls, ids used twice, empty requests.",
            "",
            "| family | protocol | refused | known from |",
            "|---|---|---|---|",
            *map(_render_rules, FAMILIES),
            "",
            "## Every family in every situation",
            "",
            "After each situation one more message is answered. A dash: the model knows no tools.",
            "",
            f"| | {' | '.join(SITUATIONS)} |",
            f"|---|{'---|' * len(SITUATIONS)}",
            *(_render_results(family, failures) for family in FAMILIES),
            "",
            RECIPE,
        ]
    )


def _render_rules(family: Family) -> str:
    names = [rule.__name__.replace("_", " ") for rule in family.rules]
    protocol = {"openai": "OpenAI", "anthropic": "Anthropic"}[family.protocol]
    rules = "; ".join(names) or "nothing else"
    return f"| {family.name} | {protocol} | {rules} | [{family.surety}]({family.source}) |"


def _render_results(family: Family, failures: Collection[tuple[str, str]]) -> str:
    results = []
    for situation in SITUATIONS:
        if situation in NEED_TOOLS and not family.knows_tools:
            results.append("–")
        else:
            results.append("fails" if (family.name, situation) in failures else "yes")
    return f"| {family.name} | {' | '.join(results)} |"
