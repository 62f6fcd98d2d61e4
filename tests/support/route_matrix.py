"""Every route of the APIs, its methods, and for each a body that its owner could send."""

from typing import Any

SESSION, LINE, RULE, MESSAGE, RUN, CALL, HOOK, SERVER = (
    "<uuid:session_id>",
    "<int:line_id>",
    "<int:rule_id>",
    "<int:message_id>",
    "<uuid:run_id>",
    "<int:number>",
    "<uuid:webhook_id>",
    "<uuid:server_id>",
)
RESPONSE, CONVERSATION, ITEM = (
    "(?P<response_id>resp_[^/]*)",
    "(?P<conversation_id>conv_[^/]*)",
    "(?P<item_id>[^/]+)",
)
HELLO_BODY = {"content": "Hi"}
# The methods of each route, each with a body that the route would accept from the owner.
MATRIX: dict[str, dict[str, Any]] = {
    "api/v1/sessions": {"GET": None, "POST": {}},
    f"api/v1/sessions/{SESSION}": {"GET": None, "PATCH": {"title": "Mine"}, "DELETE": None},
    f"api/v1/sessions/{SESSION}/messages": {"GET": None, "POST": HELLO_BODY},
    f"api/v1/sessions/{SESSION}/messages/import": {
        "POST": {"messages": [{"role": "user", "content": "Hi"}]}
    },
    f"api/v1/sessions/{SESSION}/tool_results": {
        "POST": {"results": [{"tool_call_id": "c1", "content": "Rain"}]}
    },
    f"api/v1/sessions/{SESSION}/approvals": {
        "GET": None,
        "POST": {"approvals": [{"tool_call_id": "c1", "decision": "once"}]},
        "DELETE": None,
    },
    f"api/v1/sessions/{SESSION}/attachments": {"GET": None, "POST": "a file"},
    "api/v1/attachments/inspect": {"POST": "a file"},
    f"api/v1/sessions/{SESSION}/cancel": {"POST": None},
    f"api/v1/sessions/{SESSION}/events": {"GET": None},
    f"api/v1/sessions/{SESSION}/context": {"GET": None},
    f"api/v1/sessions/{SESSION}/context/preview": {"GET": None},
    f"api/v1/sessions/{SESSION}/context/history": {"GET": None},
    f"api/v1/sessions/{SESSION}/context/missing": {"GET": None},
    f"api/v1/sessions/{SESSION}/context/undo": {"POST": None},
    f"api/v1/sessions/{SESSION}/context/redo": {"POST": None},
    f"api/v1/sessions/{SESSION}/context/rewind": {"POST": {"version": 0}},
    f"api/v1/sessions/{SESSION}/compact": {"POST": {"wait": True}},
    f"api/v1/sessions/{SESSION}/compactions": {"GET": None},
    f"api/v1/sessions/{SESSION}/summary": {"PATCH": {"summary": "Nothing."}, "DELETE": None},
    f"api/v1/sessions/{SESSION}/state": {"GET": None, "PATCH": {"state": {"tasks": ["Mine."]}}},
    f"api/v1/sessions/{SESSION}/memory": {"POST": {"text": "Mine."}},
    f"api/v1/sessions/{SESSION}/ledger": {"GET": None, "POST": {"kind": "rule", "text": "Mine."}},
    f"api/v1/sessions/{SESSION}/ledger/{LINE}": {
        "GET": None,
        "PATCH": {"pinned": True},
        "DELETE": None,
    },
    f"api/v1/sessions/{SESSION}/rules": {"GET": None, "PATCH": {"left_out": True}},
    "api/v1/preferences": {"GET": None, "PATCH": {"time_zone": "Asia/Tokyo"}},
    "api/v1/rules": {"GET": None, "POST": {"text": "Mine."}},
    f"api/v1/rules/{RULE}": {"GET": None, "PATCH": {"text": "Mine."}, "DELETE": None},
    f"api/v1/sessions/{SESSION}/search": {"GET": {"q": "secret"}},
    f"api/v1/sessions/{SESSION}/export": {"GET": None},
    f"api/v1/sessions/{SESSION}/shares": {"POST": {}},
    "api/v1/shares": {"GET": None},
    "api/v1/shares/<uuid:share_id>": {"DELETE": None},
    "api/v1/export": {"GET": None},
    "api/v1/imports": {"POST": {}},
    "api/v1/imports/uploads": {"POST": {"files": [{"name": "a.json", "size": 1}]}},
    "api/v1/imports/<uuid:import_id>": {"GET": None, "DELETE": None},
    "api/v1/imports/<uuid:import_id>/files/<uuid:file_id>": {"PUT": {}},
    "api/v1/imports/<uuid:import_id>/problems/<int:problem_id>/original": {"GET": None},
    "api/v1/sessions/import": {"POST": {}},
    f"api/v1/messages/{MESSAGE}": {"PATCH": HELLO_BODY, "DELETE": None},
    f"api/v1/messages/{MESSAGE}/fork": {"POST": None},
    f"api/v1/messages/{MESSAGE}/pin": {"POST": {}},
    f"api/v1/messages/{MESSAGE}/regenerate": {"POST": {}},
    f"api/v1/messages/{MESSAGE}/request": {"GET": None},
    f"api/v1/messages/{MESSAGE}/restore": {"POST": None},
    "api/v1/attachments/<uuid:attachment_id>": {"GET": None, "DELETE": None},
    f"api/v1/compactions/{RUN}": {"GET": None},
    f"api/v1/compactions/{RUN}/calls": {"GET": None},
    f"api/v1/compactions/{RUN}/calls/{CALL}": {"GET": None},
    f"api/v1/compactions/{RUN}/rewind": {"POST": None},
    f"api/v1/compactions/{RUN}/cancel": {"POST": None},
    "api/v1/search": {"GET": {"q": "secret"}},
    "api/v1/projects": {"GET": None, "POST": {"name": "Mine"}},
    "api/v1/projects/<uuid:project_id>": {"GET": None, "PATCH": {"name": "Mine"}, "DELETE": None},
    "api/v1/projects/<uuid:project_id>/files": {"GET": None, "POST": "a file"},
    "api/v1/projects/<uuid:project_id>/files/<uuid:file_id>": {"GET": None, "DELETE": None},
    "api/v1/mcp_servers": {
        "GET": None,
        "POST": {"name": "files", "url": "http://127.0.0.1/mcp"},  # the guard refuses it at once
    },
    f"api/v1/mcp_servers/{SERVER}": {"GET": None, "PATCH": {"is_active": False}, "DELETE": None},
    f"api/v1/mcp_servers/{SERVER}/refresh": {"POST": None},
    "api/v1/models": {"GET": None},
    "api/v1/policies": {"GET": None},
    "api/v1/setup": {"GET": None, "PATCH": {"default_model": None}},
    "api/v1/setup/providers/<slug:name>/test": {"POST": None},
    "api/v1/usage": {"GET": None},
    "api/v1/tokens": {"GET": None, "POST": {}, "DELETE": None},
    "api/v1/tokens/<str:token_id>": {"PATCH": {"keeps_conversations": False}, "DELETE": None},
    "api/v1/prompts": {"GET": None, "POST": {"name": "mine", "text": "Mine."}},
    "api/v1/prompts/<uuid:prompt_id>": {"GET": None, "PATCH": {"name": "mine"}, "DELETE": None},
    "api/v1/webhooks": {"GET": None, "POST": {"url": "https://example.com/"}},
    f"api/v1/webhooks/{HOOK}": {"GET": None, "PATCH": {"is_active": False}, "DELETE": None},
    f"api/v1/webhooks/{HOOK}/deliveries": {"GET": None},
    "v1/chat/completions": {
        "POST": {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    },
    "v1/embeddings": {"POST": {"model": "test-model", "input": "Hi"}},
    "v1/completions": {"POST": {"model": "test-model", "prompt": "Hi"}},
    "v1/messages": {
        "POST": {
            "model": "test-model",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "Hi"}],
        }
    },
    "v1/messages/count_tokens": {
        "POST": {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    },
    "v1/models": {"GET": None},
    "v1/models/<path:name>": {"GET": None},
    "v1/responses": {"POST": {"model": "test-model", "input": "Hi"}},
    "v1/responses/compact": {"POST": {"model": "test-model", "input": "Hi"}},
    "v1/responses/input_tokens": {"POST": {"model": "test-model", "input": "Hi"}},
    f"v1/responses/{RESPONSE}": {"GET": None, "DELETE": None},
    f"v1/responses/{RESPONSE}/cancel": {"POST": None},
    f"v1/responses/{RESPONSE}/input_items": {"GET": None},
    "v1/conversations": {"POST": {}},
    f"v1/conversations/{CONVERSATION}": {
        "GET": None,
        "POST": {"metadata": {"a": "b"}},
        "DELETE": None,
    },
    f"v1/conversations/{CONVERSATION}/items": {
        "GET": None,
        "POST": {"items": [{"role": "user", "content": "Hi"}]},
    },
    f"v1/conversations/{CONVERSATION}/items/{ITEM}": {"GET": None, "DELETE": None},
}
