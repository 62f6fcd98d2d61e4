"""OpenAI's own client pointed at Chatcore: with a memory by the session's name, and a tool that runs here.

    CHATCORE_URL=http://127.0.0.1:8000 CHATCORE_TOKEN=… python openai_chat.py "What is the weather in Rome?" "And tomorrow?"

It needs `openai` alone. Only what is new is sent: the session knows the rest, however long it gets.
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
    """A tool that runs on the client's side."""
    return f"Sunny in {city}, 21 °C."


def ask(client: OpenAI, model: str, content: str) -> str:
    """Say something; tools that the model calls are run until it answers. Words are printed as they come."""
    new: list[Any] = [{"role": "user", "content": content}]
    while True:
        with client.chat.completions.stream(model=model, messages=new, tools=[WEATHER]) as stream:
            for event in stream:
                if event.type == "content.delta":
                    print(event.delta, end="", flush=True)
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            print()
            return message.content or ""
        new = [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": get_weather(**json.loads(call.function.arguments)),
            }
            for call in message.tool_calls
        ]


def main() -> None:
    """Say each argument to one session, by the first model there is."""
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
