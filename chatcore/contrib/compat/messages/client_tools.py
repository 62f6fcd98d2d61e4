"""Tools of Anthropic's own that the client runs, as functions.

Anthropic's models know these by their types alone; every model can call them by a schema.
"""

from collections.abc import Mapping
from typing import Any

_TEXT = {"type": "string"}
_PLACE = {"type": "array", "items": {"type": "integer"}}

_DESCRIPTIONS: Mapping[str, str] = {
    "bash": "Run a command in a shell that stays open between calls.",
    "text_editor": "View a text file or a folder, and create or edit text files.",
    "memory": "Keep notes in files below /memories that outlast the conversation.",
    "computer": "See the screen, and use mouse and keyboard.",
}
_COMMANDS: Mapping[str, list[str]] = {
    "text_editor": ["view", "create", "str_replace", "insert", "undo_edit"],
    "memory": ["view", "create", "str_replace", "insert", "delete", "rename"],
}
_ACTIONS = [
    "screenshot",
    "left_click",
    "right_click",
    "middle_click",
    "double_click",
    "triple_click",
    "left_click_drag",
    "left_mouse_down",
    "left_mouse_up",
    "mouse_move",
    "cursor_position",
    "scroll",
    "type",
    "key",
    "hold_key",
    "wait",
    "zoom",
]
_FILE_MEMBERS: Mapping[str, Any] = {
    "path": _TEXT,
    "file_text": {**_TEXT, "description": "The whole text of a file that is created."},
    "old_str": {**_TEXT, "description": "What is replaced; it must stand there once."},
    "new_str": _TEXT,
    "insert_line": {"type": "integer", "description": "The line behind which is inserted; 0: top."},
    "insert_text": _TEXT,
    "view_range": {**_PLACE, "description": "First and last line; -1 is the end."},
}
_MEMBERS: Mapping[str, Mapping[str, Any]] = {
    "bash": {
        "command": {**_TEXT, "description": "The command."},
        "restart": {"type": "boolean", "description": "True: start the shell anew, alone."},
    },
    "text_editor": _FILE_MEMBERS,
    "memory": {**_FILE_MEMBERS, "old_path": _TEXT, "new_path": _TEXT},
    "computer": {
        "action": {"type": "string", "enum": _ACTIONS},
        "coordinate": {**_PLACE, "description": "x and y in pixels."},
        "start_coordinate": _PLACE,
        "region": {**_PLACE, "description": "x and y of two corners, for zoom."},
        "text": {**_TEXT, "description": "What is typed, or the keys, as ctrl+s."},
        "duration": {"type": "number", "description": "Seconds."},
        "scroll_direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
        "scroll_amount": {"type": "integer"},
    },
}
_REQUIRED: Mapping[str, list[str]] = {
    "bash": [],
    "text_editor": ["command", "path"],
    "memory": ["command"],
    "computer": ["action"],
}


def build_client_tool(kind: str, name: str) -> dict[str, Any]:
    """Return the function that stands for a tool of this kind under the client's name."""
    properties = dict(_MEMBERS[kind])
    if kind in _COMMANDS:
        properties["command"] = {"type": "string", "enum": _COMMANDS[kind]}
    return {
        "name": name,
        "description": _DESCRIPTIONS[kind],
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": _REQUIRED[kind],
        },
    }
