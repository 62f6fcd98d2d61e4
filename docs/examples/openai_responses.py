"""Talk to Chatcore with the Responses API of OpenAI's own client: a conversation and a tool.

    export CHATCORE_URL=http://127.0.0.1:8000 CHATCORE_TOKEN=…
    python openai_responses.py "What is the weather in Rome?" "And tomorrow?"

It needs only the package `openai`. The conversation is a session, so only new items are sent.
"""

import json
import os
import sys
from typing import Any

from openai import OpenAI

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city now.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "strict": False,
}


def get_weather(city: str) -> str:
    """Return the weather in a city. This is the tool, and it runs on the client's side."""
    return f"Sunny in {city}, 21 °C."


def ask(client: OpenAI, model: str, conversation_id: str, content: str) -> None:
    """Send a message, run the tools that the model calls, and print its answer as it streams."""
    items: list[Any] = [{"role": "user", "content": content}]
    while items:
        with client.responses.stream(
            model=model, conversation=conversation_id, input=items, tools=[WEATHER]
        ) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    print(event.delta, end="", flush=True)
            output = stream.get_final_response().output
        items = [
            {
                "type": "function_call_output",
                "call_id": item.call_id,
                "output": get_weather(**json.loads(item.arguments)),
            }
            for item in output
            if item.type == "function_call"
        ]
    print()


def main() -> None:
    """Send each argument to one conversation, with the first model of the list."""
    url = os.environ.get("CHATCORE_URL", "http://127.0.0.1:8000")
    client = OpenAI(base_url=f"{url}/v1", api_key=os.environ["CHATCORE_TOKEN"])
    model = os.environ.get("CHATCORE_MODEL") or next(iter(client.models.list())).id
    conversation = client.conversations.create()
    for content in sys.argv[1:] or ["Hello!"]:
        print("you:", content)
        print("model: ", end="")
        ask(client, model, conversation.id, content)


if __name__ == "__main__":
    main()
