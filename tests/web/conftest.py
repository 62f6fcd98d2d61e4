"""Fixtures for tests in a real Chromium."""

from playwright.sync_api import expect

from tests.support.browsing import EXPECT_TIMEOUT, browser, page

__all__ = ["browser", "page"]

expect.set_options(timeout=EXPECT_TIMEOUT)
