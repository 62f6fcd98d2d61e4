"""The programs that can be connected, and what stands in the settings of each.

Each block was run with the program in the version of docs/clients.md. Address, token, names of
models and their limits are filled in, so nothing is left to write.
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models_registry.models import AiModel

PLACEHOLDER = "YOUR-TOKEN"
SMALL_OUTPUT = 8_192  # for a model whose output limit is unknown


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What a block is filled with.

    `address` is the server's, without /v1 and without a slash at its end. `model` answers, and
    `small_model` does what a program asks beside the conversation: titles, searches.
    """

    address: str
    token: str
    model: AiModel
    small_model: AiModel
    names: Mapping[int, str]  # of models, by their keys

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.names[self.model.pk]

    @property
    def small_name(self) -> str:
        """The name of the small model."""
        return self.names[self.small_model.pk]

    @property
    def models(self) -> list[AiModel]:
        """The model, and the small one if it is another."""
        return (
            [self.model] if self.small_model.pk == self.model.pk else [self.model, self.small_model]
        )


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program: what it is called, where its block goes, and how it is started.

    A block without a `file` is for a shell. `{model}` in `start` stands for the model's name.
    """

    key: str
    title: str
    write: Callable[[Connection], str]
    file: str = ""
    start: str = ""

    def build_block(self, connection: Connection) -> str:
        """Return the text for the file or the shell."""
        return self.write(connection).strip() + "\n"

    def build_start(self, connection: Connection) -> str:
        """Return the command that starts the program with the model."""
        return self.start.replace("{model}", shlex.quote(connection.name))


def name_models(models: Sequence[AiModel]) -> dict[int, str]:
    """Return the name by which programs call each model: the short one where it is clear.

    Some programs know what a model can do by its name, and not with a provider before it.
    """
    names = [model.name for model in models]
    return {
        model.pk: model.name if names.count(model.name) == 1 else str(model) for model in models
    }


def _text(value: str) -> str:
    """Return a text in quotation marks, as JSON, TOML and YAML all read it."""
    return json.dumps(value, ensure_ascii=False)


def _write_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _get_output(model: AiModel) -> int:
    window = model.context_window_size
    return model.max_output_tokens or (min(SMALL_OUTPUT, window // 4) if window else SMALL_OUTPUT)


def _write_codex(to: Connection) -> str:
    window = to.model.context_window_size
    limit = f"model_context_window = {window}\n" if window else ""
    return f"""
model = {_text(to.name)}
model_provider = "chatcore"
{limit}
[model_providers.chatcore]
name = "Chatcore"
base_url = {_text(f"{to.address}/v1")}
wire_api = "responses"
experimental_bearer_token = {_text(to.token)}
"""


def _write_claude(to: Connection) -> str:
    variables = {
        "ANTHROPIC_BASE_URL": to.address,
        "ANTHROPIC_AUTH_TOKEN": to.token,
        "ANTHROPIC_MODEL": to.name,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": to.name,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": to.name,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": to.small_name,
    }
    if to.model.context_window_size:
        variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(to.model.context_window_size)
    return _write_json({"env": variables})


def _write_opencode(to: Connection) -> str:
    models: dict[str, Any] = {}
    for model in to.models:
        models[to.names[model.pk]] = {"tool_call": True, "attachment": model.may_see_images}
        if model.context_window_size:
            limit = {"context": model.context_window_size, "output": _get_output(model)}
            models[to.names[model.pk]]["limit"] = limit
    return _write_json(
        {
            "$schema": "https://opencode.ai/config.json",
            "model": f"chatcore/{to.name}",
            "small_model": f"chatcore/{to.small_name}",
            "provider": {
                "chatcore": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Chatcore",
                    "options": {"baseURL": f"{to.address}/v1", "apiKey": to.token},
                    "models": models,
                }
            },
        }
    )


def _write_cline(to: Connection) -> str:
    arguments = ["--provider", "openai", "--apikey", to.token]
    arguments += ["--baseurl", f"{to.address}/v1", "--modelid", to.name]
    return shlex.join(["cline", "auth", *arguments])


def _write_continue(to: Connection) -> str:
    window = to.model.context_window_size
    limits = f"      contextLength: {window}\n" if window else ""
    limits += f"      maxTokens: {_get_output(to.model)}"
    return f"""
name: Chatcore
version: 1.0.0
schema: v1
models:
  - name: {_text(to.name)}
    provider: openai
    model: {_text(to.name)}
    apiBase: {_text(f"{to.address}/v1")}
    apiKey: {_text(to.token)}
    roles: [chat, edit, apply]
    capabilities: [{"tool_use, image_input" if to.model.may_see_images else "tool_use"}]
    defaultCompletionOptions:
{limits}
"""


def _write_qwen(to: Connection) -> str:
    models = []
    for model in to.models:
        entry: dict[str, Any] = {
            "id": to.names[model.pk],
            "baseUrl": f"{to.address}/v1",
            "envKey": "CHATCORE_TOKEN",
        }
        if model.context_window_size:
            entry["generationConfig"] = {"contextWindowSize": model.context_window_size}
        models.append(entry)
    return _write_json(
        {
            "env": {"CHATCORE_TOKEN": to.token},
            "modelProviders": {"openai": models},
            "security": {"auth": {"selectedType": "openai"}},
            "model": {"name": to.name},
        }
    )


def _write_pi(to: Connection) -> str:
    models = []
    for model in to.models:
        entry: dict[str, Any] = {"id": to.names[model.pk], "maxTokens": _get_output(model)}
        if model.context_window_size:
            entry["contextWindow"] = model.context_window_size
        if model.may_see_images:
            entry["input"] = ["text", "image"]
        models.append(entry)
    provider = {
        "baseUrl": f"{to.address}/v1",
        "api": "openai-completions",
        "apiKey": to.token,
        "models": models,
    }
    return _write_json({"providers": {"chatcore": provider}})


def _write_aider(to: Connection) -> str:
    return f"""
openai-api-base: {_text(f"{to.address}/v1")}
openai-api-key: {_text(to.token)}
model: {_text(f"openai/{to.name}")}
weak-model: {_text(f"openai/{to.small_name}")}
show-model-warnings: false
"""


def _write_llm(to: Connection) -> str:
    entry = f"""
- model_id: chatcore
  model_name: {_text(to.name)}
  api_base: {_text(f"{to.address}/v1")}
  api_key_name: chatcore
  supports_tools: true"""
    return f"""
llm keys set chatcore --value {shlex.quote(to.token)}
cat >> "$(dirname "$(llm logs path)")/extra-openai-models.yaml" <<'END'{entry}
END
"""


PROGRAMS: Mapping[str, Program] = {
    program.key: program
    for program in (
        Program(
            key="codex",
            title="Codex",
            write=_write_codex,
            file="~/.codex/config.toml",
            start="codex",
        ),
        Program(
            key="claude-code",
            title="Claude Code",
            write=_write_claude,
            file="~/.claude/settings.json",
            start="claude",
        ),
        Program(
            key="opencode",
            title="opencode",
            write=_write_opencode,
            file="~/.config/opencode/opencode.json",
            start="opencode",
        ),
        Program(key="cline", title="Cline", write=_write_cline, start="cline"),
        Program(
            key="continue",
            title="Continue",
            write=_write_continue,
            file="~/.continue/config.yaml",
            start="cn",
        ),
        Program(
            key="qwen-code",
            title="Qwen Code",
            write=_write_qwen,
            file="~/.qwen/settings.json",
            start="qwen",
        ),
        Program(
            key="pi",
            title="pi",
            write=_write_pi,
            file="~/.pi/agent/models.json",
            start="pi --model chatcore/{model}",
        ),
        Program(
            key="aider",
            title="aider",
            write=_write_aider,
            file="~/.aider.conf.yml",
            start="aider",
        ),
        Program(key="llm", title="llm", write=_write_llm, start='llm -m chatcore "Hello!"'),
    )
}
