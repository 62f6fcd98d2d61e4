"""Serve what is no request of HTTP: responses over a WebSocket."""

from chatcore.contrib.compat.responses import websocket
from chatcore.contrib.compat.switches import is_on

SOCKET_PATHS = websocket.PATHS if is_on("responses") else ()
serve_socket = websocket.serve_websocket
