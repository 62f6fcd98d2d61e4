"""The sections of the document: what each of them holds, and how a row of it is set."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models

from chatcore.signals import model_confirmed
from models_registry import catalog
from models_registry.models import ABILITIES, AiModel, Provider
from models_registry.provider_form import CONNECT_PERMISSION, CONNECTION_FIELDS, ProviderForm

RowT = TypeVar("RowT", bound=models.Model)

PROVIDER_FIELDS = (
    "protocol",
    "base_url",
    "api_key_env",
    "family",
    "options",
    "timeout_seconds",
    "is_active",
)
MODEL_FIELDS = (
    "context_window_size",
    "max_input_tokens",
    "max_output_tokens",
    "output_reserve",
    "input_price",
    "cached_input_price",
    "cache_write_price",
    "output_price",
    "price_tiers",
    "supports_tools",
    "supports_images",
    "policy",
    "summary_model",
    "is_active",
)
# What a value of a column is in TOML and JSON, and how a refusal calls it.
KINDS: tuple[tuple[type[models.Field], tuple[type, ...], str], ...] = (
    (models.BooleanField, (bool,), "true or false"),
    (models.IntegerField, (int,), "a whole number"),
    (models.FloatField, (int, float), "a number"),
    (models.DecimalField, (int, float, str), "a number"),
    (models.CharField, (str,), "a text"),
    (models.ForeignKey, (str,), "a name"),
)


class SetupRefused(Exception):
    """The document cannot be applied: `place` says where in it, and the text says why."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(f"{place}: {text}" if place else text)
        self.place = place
        self.text = text


@dataclass(frozen=True, kw_only=True)
class Author:
    """Who applies a document. Who runs the machine may name any variable of its environment."""

    is_operator: bool  # a command or the file, not a request
    is_file: bool = False


class Section(ABC, Generic[RowT]):
    """One kind of things, each with a name."""

    name: ClassVar[str]
    model: ClassVar[type[models.Model]]
    permissions: ClassVar[tuple[str, ...]]
    fields: ClassVar[tuple[str, ...]]

    @abstractmethod
    def find_row(self, name: str) -> RowT:
        """Return the row of this name, a new one if there is none, which is not stored."""

    @abstractmethod
    def list_rows(self) -> Iterable[RowT]:
        """Return the rows that are in use."""

    def get_name(self, row: RowT) -> str:
        """Return a row's name in the document."""
        return str(row)

    def describe_row(self, row: RowT) -> dict[str, object]:
        """Return a row's values as the document has them, without those that nobody has set."""
        values = {}
        for name in self.fields:
            value = getattr(row, name)
            if value != self.get_default(name):
                values[name] = str(value) if isinstance(value, models.Model) else value
        return values

    def set_values(self, row: RowT, values: Mapping[str, object], author: Author) -> bool:
        """Set values of a row and store it; return whether that changed anything."""
        place = f"{self.name}.{self.get_name(row)}"
        is_new = row._state.adding
        before = self.describe_row(row)
        for field_name, value in values.items():
            setattr(row, field_name, read_value(row, field_name, value, place=place))
        try:
            row.full_clean()
        except ValidationError as error:
            raise refuse(error, place) from None
        if is_new or before != self.describe_row(row):
            row.save()
            return True
        return False

    def get_default(self, field_name: str) -> object:
        """Return the value that a row has where nobody sets it."""
        field = self.model._meta.get_field(field_name)
        assert isinstance(field, models.Field)
        return field.get_default()

    @abstractmethod
    def deactivate(self, row: RowT) -> None:
        """Take a row out of use, which the file does not set any more."""


class Providers(Section[Provider]):
    """Endpoints of models. A key is sent with the document over REST only, and never shown."""

    name = "providers"
    model = Provider
    permissions = (
        CONNECT_PERMISSION,
        "models_registry.add_provider",
        "models_registry.change_provider",
    )
    fields = PROVIDER_FIELDS

    def find_row(self, name: str) -> Provider:
        row = Provider.objects.filter(name=name).first()
        return row or Provider(name=name, protocol=Provider.Protocol.OPENAI)

    def list_rows(self) -> Iterable[Provider]:
        return Provider.objects.filter(is_active=True).order_by("name")

    def describe_row(self, row: Provider) -> dict[str, object]:
        return {"protocol": str(row.protocol), **super().describe_row(row)}

    def set_values(self, row: Provider, values: Mapping[str, object], author: Author) -> bool:
        """Set values by the form of the operators' pages, which guards where a key goes."""
        place = f"{self.name}.{row.name}"
        before = None if row._state.adding else (self.describe_row(row), row.encrypted_api_key)
        given = {
            name: read_value(row, name, value, place=place)
            for name, value in values.items()
            if name != "api_key"
        }
        key = values.get("api_key") or ""
        if not isinstance(key, str):
            raise SetupRefused(f"{place}.api_key", "Must be a text.")
        data = {name: given.get(name, getattr(row, name)) for name in ("name", *self.fields)}
        moves = any(getattr(row, name) != data[name] for name in CONNECTION_FIELDS)
        # A key of another address does not follow, and would be used in place of a variable.
        drops_key = (moves or bool(given.get("api_key_env"))) and author.is_operator and not key
        form_class = OperatorsProviderForm if author.is_operator else ProviderForm
        form = form_class(
            {
                **data,
                "options": json.dumps(data["options"]),
                "api_key": key,
                "clear_api_key": bool(drops_key and row.encrypted_api_key),
            },
            instance=row,
        )
        if not form.is_valid():
            raise refuse(ValidationError(form.errors.as_data()), place)
        if before is not None and before[0] == self.describe_row(row) and not key and not drops_key:
            return False
        saved = form.save()
        return before != (self.describe_row(saved), saved.encrypted_api_key)

    def get_default(self, field_name: str) -> object:
        is_protocol = field_name == "protocol"
        return Provider.Protocol.OPENAI if is_protocol else super().get_default(field_name)

    def deactivate(self, row: Provider) -> None:
        Provider.objects.filter(pk=row.pk).update(is_active=False)


class OperatorsProviderForm(ProviderForm):
    """The form for who runs the machine: any variable may be sent to any address."""

    def clean_api_key_env(self) -> str:
        """Take any name but those of our own: whoever names it can read the variable."""
        name = str(self.cleaned_data["api_key_env"])
        if name.startswith("CHATCORE_"):
            raise forms.ValidationError("A variable of Chatcore's own is no key of a provider.")
        return name

    def _check_variable(self, form_data: Mapping[str, object]) -> None:
        pass


class Models(Section[AiModel]):
    """Language models, named `provider/model`; what is left out, the catalog may fill in."""

    name = "models"
    model = AiModel
    permissions = ("models_registry.add_aimodel", "models_registry.change_aimodel")
    fields = MODEL_FIELDS

    def find_row(self, name: str) -> AiModel:
        provider_name, separator, model_name = name.partition("/")
        provider = Provider.objects.filter(name=provider_name).first()
        if not (separator and model_name):
            raise SetupRefused(f"models.{name}", "A model is named provider/model.")
        if provider is None:
            raise SetupRefused(f"models.{name}", f"There is no provider called {provider_name}.")
        row = provider.models.select_related("provider").filter(name=model_name).first()
        if row is not None:
            return row
        row = AiModel(provider=provider, name=model_name)
        known = catalog.look_up_model(model_name)
        for ability in ABILITIES:
            setattr(row, ability, known.values.get(ability) if known else None)
        return row

    def list_rows(self) -> Iterable[AiModel]:
        return AiModel.objects.list_usable()

    def set_values(self, row: AiModel, values: Mapping[str, object], author: Author) -> bool:
        """Set values as an operator does: neither catalogs nor refusals know better."""
        row.catalog_values = {
            name: value for name, value in row.catalog_values.items() if name not in values
        }
        is_changed = super().set_values(row, values, author)
        if "context_window_size" in values or "max_input_tokens" in values:
            model_confirmed.send(None, model=row)
        for ability in ABILITIES:
            learned = row.provider.list_learned().get(row.name, {})
            if ability in values and ability in learned:
                row.provider.keep_learned(row.name, {ability: None})
        return is_changed

    def deactivate(self, row: AiModel) -> None:
        AiModel.objects.filter(pk=row.pk).update(is_active=False, is_default=False)


def read_value(row: models.Model, name: str, value: Any, *, place: str) -> Any:
    """Return a value as the column has it. Raises SetupRefused if it is of another kind."""
    try:
        field = row._meta.get_field(name)
    except FieldDoesNotExist:
        raise SetupRefused(f"{place}.{name}", "There is no such value.") from None
    assert isinstance(field, models.Field)
    if value is None and field.null:
        return None
    _check_kind(field, value, place=f"{place}.{name}")
    if isinstance(field, models.ForeignKey):
        model = AiModel.objects.select_related("provider").find_by_name(value)
        if model is None:
            raise SetupRefused(f"{place}.{name}", f"There is no usable model called {value}.")
        return model
    if isinstance(field, models.DecimalField):
        value = str(value)
    try:
        if isinstance(field, models.JSONField):
            json.dumps(value, allow_nan=False)
        return field.to_python(value)
    except (OverflowError, TypeError, ValueError):
        raise SetupRefused(f"{place}.{name}", "There is no room for such a value.") from None
    except ValidationError as error:
        raise SetupRefused(f"{place}.{name}", " ".join(error.messages)) from None


def _check_kind(field: object, value: object, *, place: str) -> None:
    for field_class, types, words in KINDS:
        if isinstance(field, field_class):
            if type(value) not in types:
                raise SetupRefused(place, f"Must be {words}.")
            return


def refuse(error: ValidationError, place: str) -> SetupRefused:
    """Return the refusal for what a row or a form complains of first."""
    for name, messages in error.message_dict.items():
        is_field = name not in ("__all__", "name")
        return SetupRefused(f"{place}.{name}" if is_field else place, " ".join(messages))
    return SetupRefused(place, " ".join(error.messages))
