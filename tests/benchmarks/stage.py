"""A browser before a web process, signed in: what every measure of the pages stands on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.test import Client
from playwright.sync_api import Page, sync_playwright

from models_registry.models import AiModel
from tests.benchmarks import stored
from tests.benchmarks.serving import run_server
from tests.support.browsing import ARGUMENTS, CHROMIUM
from tests.support.scripted_model import ScriptedModel


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`page` is signed in as `stored.user()` and knows the server's address; `using` is the model whose answers `scripted` says."""

    page: Page
    scripted: ScriptedModel
    using: AiModel


@contextmanager
def open_stage() -> Iterator[Stage]:
    """The server is a process of its own, the scripted model a thread of this one."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = (
        "1"  # playwright's loop is on this thread, and the ORM as synchronous as ever
    )
    with ScriptedModel() as scripted, run_server() as (url, _), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        client = Client()
        client.force_login(stored.get_user())
        context = chromium.new_context(
            viewport={"width": 1280, "height": 860}, base_url=url, locale="en-US"
        )
        context.add_cookies(
            [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}]
        )
        yield Stage(
            page=context.new_page(), scripted=scripted, using=stored.create_model(scripted.base_url)
        )
        chromium.close()
