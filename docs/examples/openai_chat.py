"""Talk to Chatcore with OpenAI's own client: a session that remembers and a tool that runs here.

    export CHATCORE_URL=http://127.0.0.1:8000 CHATCORE_TOKEN=…
    python openai_chat.py "What is the weather in Rome?" "And tomorrow?"

It needs only the package `openai`. It sends only the new messages, because the session stores the
others.
"""

import json
import os
import sys
from typing import Any

from openai import OpenAI

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def get_weather(city: str) -> str:
    """Return the weather in a city. This is the tool, and it runs on the client's side."""
    return f"Sunny in {city}, 21 °C."


def ask(client: OpenAI, model: str, content: str) -> str:
    """Send a message, run the tools that the model calls, and return its answer.

    The answer is printed while it streams.
    """
    messages: list[Any] = [{"role": "user", "content": content}]
    while True:
        with client.chat.completions.stream(
            model=model, messages=messages, tools=[WEATHER]
        ) as stream:
            for event in stream:
                if event.type == "content.delta":
                    print(event.delta, end="", flush=True)
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            print()
            return message.content or ""
        messages = [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": get_weather(**json.loads(call.function.arguments)),
            }
            for call in message.tool_calls
        ]


def main() -> None:
    """Send each argument to one session, with the first model of the list."""
    url = os.environ.get("CHATCORE_URL", "http://127.0.0.1:8000")
    headers = {"X-Session-Id": os.environ.get("CHATCORE_SESSION", "from-an-example")}
    client = OpenAI(
        base_url=f"{url}/v1", api_key=os.environ["CHATCORE_TOKEN"], default_headers=headers
    )
    model = os.environ.get("CHATCORE_MODEL") or next(iter(client.models.list())).id
    for content in sys.argv[1:] or ["Hello!"]:
        print("you:", content)
        print("model: ", end="")
        ask(client, model, content)


if __name__ == "__main__":
    main()
