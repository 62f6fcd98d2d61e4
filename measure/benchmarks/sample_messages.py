"""Ten typical messages: short and long questions, code, a table and a tool call with its result."""

from collections.abc import Iterator
from typing import Any

SENTENCE = (
    "The index holds the words of every message, and a query reads only the pages that it needs. "
)
CODE = '''Here is the whole function, with the **two changes** you asked for:

```python
def window(messages, budget):
    """The newest messages that fit, oldest first."""
    kept, tokens = [], 0
    for message in reversed(messages):
        tokens += estimate(message.content)
        if tokens > budget:
            break  # the rest is summarized
        kept.append(message)
    return kept[::-1]
```

1. It walks *backwards*, so that nothing is read twice.
2. It stops at the budget; see `estimate` for how tokens are counted.
'''
TABLE = """## What the measurements say

| file | before | after |
|---|---:|---:|
| `index.db` | 1.2 GB | 0.4 GB |
| `words.db` | 310 MB | 290 MB |
| `log.db` | 88 MB | 12 MB |

- The index shrank to a **third**.
- The log was rewritten; nothing else changed.

> Numbers are of one run on an idle machine.
"""


def list_ten_messages() -> Iterator[dict[str, Any]]:
    """Yield the fields of each message. The user's comes first, a long answer last."""
    calls = [{"id": "call_1", "name": "read_file", "arguments": '{"path": "report.json"}'}]
    yield {"role": "user", "content": "How do I keep only the newest messages?"}
    yield {"role": "assistant", "content": CODE}
    yield {"role": "user", "content": "Thanks. These are my notes so far:\n\n" + SENTENCE * 20}
    yield {"role": "assistant", "content": "Let me look at the report.", "tool_calls": calls}
    yield {
        "role": "tool",
        "content": '{"bytes": 1288490188}\n' * 120,
        "tool_call_id": "call_1",
        "tool_name": "read_file",
    }
    yield {"role": "assistant", "content": TABLE}
    yield {"role": "user", "content": "And is that good?"}
    yield {"role": "assistant", "content": "Yes."}
    yield {"role": "user", "content": "Explain it to somebody who has never seen an index."}
    yield {
        "role": "assistant",
        "content": "\n\n".join(
            f"### Part {part}\n\n" + SENTENCE * 6 + "\n\n" + CODE for part in range(1, 4)
        ),
    }
