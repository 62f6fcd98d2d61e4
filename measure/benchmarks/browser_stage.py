"""A signed-in browser page before a web process, for the measurements of the pages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.test import Client
from playwright.sync_api import Page, sync_playwright

from measure.benchmarks import sample_sessions
from measure.benchmarks.serving import run_server
from models_registry.models import AiModel
from tests.support.browsing import ARGUMENTS, CHROMIUM
from tests.support.scripted_model import ScriptedModel


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A page signed in as the user of the sample sessions, and the model that answers there.

    `scripted` is the provider of the model `using`.
    """

    page: Page
    scripted: ScriptedModel
    using: AiModel


@contextmanager
def open_stage() -> Iterator[Stage]:
    """Start the server as a process of its own and the scripted model as a thread of this one."""
    # Playwright's event loop runs on this thread, where the ORM is called, too.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with ScriptedModel() as scripted, run_server() as (url, _), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        client = Client()
        client.force_login(sample_sessions.get_user())
        context = chromium.new_context(
            viewport={"width": 1280, "height": 860}, base_url=url, locale="en-US"
        )
        context.add_cookies(
            [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}]
        )
        yield Stage(
            page=context.new_page(),
            scripted=scripted,
            using=sample_sessions.create_model(scripted.base_url),
        )
        chromium.close()
