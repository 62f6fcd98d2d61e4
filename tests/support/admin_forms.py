"""The forms of the admin as a browser fills and posts them."""

from html.parser import HTMLParser


class FormReader(HTMLParser):
    """Collects the values of a page's first form with this id."""

    def __init__(self, form_id: str) -> None:
        super().__init__()
        self._form_id = form_id
        self._is_inside = False
        self._select: str | None = None
        self._textarea: str | None = None
        self.values: dict[str, str | list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_inside = attributes.get("id") == self._form_id
        if not self._is_inside:
            return
        name = attributes.get("name", "")
        if tag == "select":
            self._select = name
        elif tag == "option" and "selected" in attributes and self._select:
            self._add(self._select, attributes.get("value", ""))
        elif tag == "textarea":
            self._textarea = name
            self._add(name, "")
        elif tag == "input" and name:
            self._add_input(name, attributes)

    def _add_input(self, name: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("type")
        if kind == "checkbox" and "checked" in attributes:
            self._add(name, attributes.get("value", "on"))
        elif kind not in ("checkbox", "submit"):
            self._add(name, attributes.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_inside = False
        elif tag == "textarea":
            self._textarea = None

    def handle_data(self, data: str) -> None:
        if self._textarea:
            # A browser drops the line break that begins a text area.
            self.values[self._textarea] = data.removeprefix("\n").removeprefix("\r\n")

    def _add(self, name: str, value: str) -> None:
        if name in self.values:
            earlier = self.values[name]
            self.values[name] = [*([earlier] if isinstance(earlier, str) else earlier), value]
        else:
            self.values[name] = value


def read_form(html: str, form_id: str) -> dict[str, str | list[str]]:
    """Return what a browser would post if nobody changed anything."""
    reader = FormReader(form_id)
    reader.feed(html)
    reader.values.pop("csrfmiddlewaretoken", None)
    return reader.values
