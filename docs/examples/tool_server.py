"""A tool server of one's own: draw a picture, speak a text.

It passes calls on to services that you choose, and serves the files that they make.

    export OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=…   # pictures and voice
    export TOOLS_URL=https://tools.example.com              # as browsers reach this server
    python tool_server.py 8345

Needs the packages `mcp` and `httpx2`. docs/recipes.md says how Chatcore comes to know it.
"""

import base64
import os
import sys
from pathlib import Path
from uuid import uuid4

import httpx2
from mcp.server.mcpserver import MCPServer
from starlette.requests import Request
from starlette.responses import FileResponse, Response

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8345
MODEL_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL_KEY = os.environ.get("OPENAI_API_KEY", "")
FOLDER = Path(os.environ.get("TOOLS_FOLDER", "made"))
OWN_URL = os.environ.get("TOOLS_URL", f"http://127.0.0.1:{PORT}")
TYPES = {".png": "image/png", ".mp3": "audio/mpeg"}

server = MCPServer("tools")
client = httpx2.Client(timeout=60, headers={"Authorization": f"Bearer {MODEL_KEY}"})


@server.tool()
def draw_picture(description: str) -> str:
    """Draw a picture, and return a link to it. Give the person the link as it is."""
    model = os.environ.get("IMAGE_MODEL", "gpt-image-1")
    body = {"model": model, "prompt": description, "size": "1024x1024"}
    answer = client.post(f"{MODEL_URL}/images/generations", json=body).raise_for_status()
    picture = base64.b64decode(answer.json()["data"][0]["b64_json"])
    return f"[{description[:60]}]({keep(picture, '.png')})"


@server.tool()
def speak(text: str) -> str:
    """Read a text aloud, and return a link to the sound. Give the person the link as it is."""
    model, voice = os.environ.get("SPEECH_MODEL", "tts-1"), os.environ.get("VOICE", "alloy")
    body = {"model": model, "voice": voice, "input": text}
    answer = client.post(f"{MODEL_URL}/audio/speech", json=body).raise_for_status()
    return f"[Listen]({keep(answer.content, '.mp3')})"


def keep(data: bytes, ending: str) -> str:
    """Write a file under a name that nobody guesses, and return its address."""
    FOLDER.mkdir(exist_ok=True)
    name = f"{uuid4().hex}{ending}"
    (FOLDER / name).write_bytes(data)
    return f"{OWN_URL}/files/{name}"


@server.custom_route("/files/{name}", methods=["GET"])
async def send_file(request: Request) -> Response:
    """Send a file that a tool has made."""
    path = FOLDER / Path(request.path_params["name"]).name
    if path.suffix not in TYPES or not path.is_file():
        return Response(status_code=404)
    return FileResponse(path, media_type=TYPES[path.suffix])


if __name__ == "__main__":
    # Whoever may reach this port may call the tools: keep it on this machine or in your network.
    server.run("streamable-http", port=PORT, stateless_http=True)
