"""The registry's rows: providers, and what each of their language models can do."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.db.models import JSONField, Q, TextChoices, Value
from django.utils import timezone

from models_registry import catalog, keys
from models_registry.prices import validate_price_tiers
from models_registry.provider_options import ProviderOptions
from models_registry.reasoning import Reasoning, find_reasoning

# What a model may take after all, so that it is tried again once a day; and when it was refused.
DAILY_FACTS = (
    "without",
    "without_values",
    "output_limit",
    "thought_room",
    "thoughts_exceed",
    "summary_chunk_tokens",
    "summary_temperature",
    "summary_in_talk",
    "summary_without_tools",
    "summary_names_lines",
)
LEARNED_AT = "learned_at"
TRUST = timedelta(days=1)

Ability = Literal["supports_tools", "supports_images"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)


Deconstruction = tuple[str, str, Sequence[object], dict[str, object]]


def validate_port_and_host(address: str) -> None:
    """Refuse an address that no client can read, as `http://[::1`."""
    try:
        urlsplit(address).port  # noqa: B018 - to read it is the check
    except ValueError as error:
        raise ValidationError(f"This is no address: {error}.") from None


class AddressField(models.CharField):
    """An address. Migrations know Django's field: validators are no part of a database."""

    default_validators = [validate_port_and_host]

    def deconstruct(self) -> Deconstruction:
        """Return Django's field, so that no migration names this module."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.CharField", arguments, options


class ProtocolField(models.CharField):
    """A protocol. Migrations know Django's field without choices: a new one needs no migration."""

    def deconstruct(self) -> Deconstruction:
        """Return Django's field, so that no migration names this module."""
        name, _, arguments, options = super().deconstruct()
        options.pop("choices", None)
        return name, "django.db.models.CharField", arguments, options


class PriceTiersField(models.JSONField):
    """Prices of long requests. Migrations know Django's field, as above."""

    default_validators = [validate_price_tiers]

    def deconstruct(self) -> Deconstruction:
        """Return Django's field, so that no migration names this module."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options


class ProviderQuerySet(models.QuerySet["Provider"]):
    """Queries for the keys of providers."""

    def list_unreadable(self) -> list[str]:
        """Return the names of the providers whose stored key cannot be decrypted."""
        rows = self.exclude(encrypted_api_key="").order_by("name")
        return [
            name
            for name, token in rows.values_list("name", "encrypted_api_key")
            if not keys.is_readable(token)
        ]


class Provider(models.Model):
    """An endpoint for requests to language models: a protocol, an address and a key."""

    class Protocol(TextChoices):
        """The protocols by the names of their modules in `chatcore/providers/`."""

        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic", "Anthropic"

    name = models.SlugField(max_length=64, unique=True)
    protocol = ProtocolField(max_length=16, choices=Protocol.choices)
    family = models.CharField(
        max_length=32,
        blank=True,
        help_text="How this family counts tokens, e.g. anthropic, mistral, google-ai.",
    )
    base_url = AddressField(
        max_length=500,
        blank=True,
        validators=[
            RegexValidator(
                r"\Ahttps?://[^\s/?#@]+(/[^\s?#]*)?\Z",
                "An http or https address without credentials or query.",
            ),
        ],
        help_text="Empty: the SDK's own address.",
    )
    encrypted_api_key = models.TextField(blank=True, editable=False)
    api_key_env = models.CharField(
        max_length=64, blank=True, help_text="Environment variable read when no key is stored."
    )
    options: "JSONField[ProviderOptions, ProviderOptions]" = models.JSONField(
        default=dict, blank=True
    )
    timeout_seconds = models.FloatField(
        default=120, validators=[MinValueValidator(0.1), MaxValueValidator(86_400)]
    )
    is_active = models.BooleanField(default=True)
    learned = models.JSONField(
        default=dict,
        blank=True,
        db_default=Value({}, models.JSONField()),
        help_text=(
            "What its refusals have told, by model: fields that it does not know, and the like."
            " Options go before it; another address voids it; empty it to ask the server anew."
        ),
    )
    catalog_values = models.JSONField(
        default=dict,
        editable=False,
        help_text="What the catalog last wrote, to tell an operator's edit.",
    )

    objects = ProviderQuerySet.as_manager()

    secret_columns = ("encrypted_api_key",)

    class Meta:
        # Who has this right can send a key to an address, so it is not part of the right to change.
        permissions = [
            ("connect_provider", "Can change addresses and keys of providers, and test them")
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row; what its models were learned to refuse goes with what was learned."""
        old_row = None if self._state.adding else Provider.objects.filter(pk=self.pk).first()
        super().save(*args, **kwargs)
        if old_row is not None:
            self._forget_refusals(old_row.list_learned())

    def _forget_refusals(self, old_facts: Mapping[str, Mapping[str, object]]) -> None:
        """Let abilities be unknown again whose refusal is no longer among the facts."""
        known_facts = self.list_learned()
        for model, facts in old_facts.items():
            for ability in ABILITIES:
                if ability in facts and ability not in known_facts.get(model, {}):
                    refusing_models = self.models.filter(name=model, **{ability: False})
                    refusing_models.update(**{ability: None})

    @property
    def api_key(self) -> str:
        """Eight dots if a key is stored, else an empty string. Assigning a key encrypts it."""
        return "••••••••" if self.encrypted_api_key else ""

    @api_key.setter
    def api_key(self, value: str) -> None:
        self.encrypted_api_key = keys.encrypt(value) if value else ""

    def has_key(self) -> bool:
        """Return whether a key is stored or its environment variable is set."""
        return bool(self.encrypted_api_key or keys.read_variable(self.api_key_env))

    def list_learned(self) -> dict[str, dict[str, Any]]:
        """Return what refusals of this address have told, by model, without what is doubtful."""
        return {
            model: {name: value for name, value in trusted.items() if name != LEARNED_AT}
            for model, trusted in self.list_dated().items()
        }

    def list_dated(self) -> dict[str, dict[str, Any]]:
        """Return what `list_learned` does, with the times."""
        learned = self.learned if isinstance(self.learned, dict) else {}
        facts = learned.get("models") if learned.get("address") == self.base_url else None
        facts = facts if isinstance(facts, dict) else {}
        return {model: _drop_doubtful(each) for model, each in facts.items()}

    def doubt_learned(self) -> None:
        """Forget what is tried again once a day anyway, because an operator has asked for it."""
        for model, facts in self.list_learned().items():
            if any(name in facts for name in DAILY_FACTS):
                self.keep_learned(model, dict.fromkeys(DAILY_FACTS))

    def keep_learned(self, model: str, facts: dict[str, Any]) -> None:
        """Store what a refusal has told of a model, beside what was known; None forgets a fact."""
        with transaction.atomic():
            row = Provider.objects.select_for_update().filter(pk=self.pk).first()
            if row is None or row.base_url != self.base_url:
                return
            known = row.list_dated()
            old = known.get(model, {})
            joined = {**old, **facts}
            for name in ("without", "without_values", "dialect"):
                if isinstance(old.get(name), dict):
                    joined[name] = {**old[name], **facts.get(name, {})}
                elif isinstance(old.get(name), list) and facts.get(name, ()) is not None:
                    joined[name] = sorted({*old[name], *facts.get(name, ())})
            joined = {name: value for name, value in joined.items() if value is not None}
            if any(facts.get(name) is not None for name in DAILY_FACTS):
                joined[LEARNED_AT] = timezone.now().isoformat()
            row.learned = {"address": row.base_url, "models": {**known, model: joined}}
            row.save(update_fields=["learned"])
        self.learned = row.learned

    def reveal_api_key(self) -> str:
        """Return the stored key in clear text, else the value of the environment variable.

        Only the provider layer may call this. Raises keys.UnreadableKey if the stored key cannot
        be decrypted.
        """
        if self.encrypted_api_key:
            return keys.decrypt(self.encrypted_api_key)
        return keys.read_variable(self.api_key_env)


def _drop_doubtful(facts: Any) -> Any:
    """Return facts without those that were learned more than a day ago.

    Without a time they are an operator's, and stay.
    """
    if not isinstance(facts, dict) or LEARNED_AT not in facts:
        return facts
    try:
        is_doubtful = timezone.now() - datetime.fromisoformat(facts[LEARNED_AT]) > TRUST
    except (TypeError, ValueError):
        is_doubtful = True
    dropped = DAILY_FACTS if is_doubtful else ()
    return {name: value for name, value in facts.items() if name not in dropped}


class AiModelQuerySet(models.QuerySet["AiModel"]):
    """Queries for the language models that may be used."""

    def filter_usable(self) -> "AiModelQuerySet":
        """Select the active models of active providers."""
        return self.filter(is_active=True, provider__is_active=True).select_related("provider")

    def list_usable(self) -> "AiModelQuerySet":
        """Select the usable models in the order of menus: by provider, then by name."""
        return self.filter_usable().order_by("provider__name", "name")

    def find_by_name(self, name: str) -> "AiModel | None":
        """Return the usable model with this name, written `name` or `provider/name`, or None.

        If two providers offer the same name, the default model wins, then the older row.
        """
        # Names of models may contain slashes themselves, so the whole name is tried too.
        provider, separator, model_name = name.partition("/")
        condition = Q(name=name)
        if separator:
            condition |= Q(provider__name=provider, name=model_name)
        return self.filter_usable().filter(condition).order_by("-is_default", "id").first()

    def find_default(self) -> "AiModel | None":
        """Return the model of new sessions, or None if no model can be used."""
        return self.filter_usable().order_by("-is_default", "id").first()


class AiModel(models.Model):
    """A language model. An unknown context window is null; nothing guesses one."""

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="models")
    name = models.CharField(max_length=128)
    context_window_size = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens; empty when unknown."
    )
    max_input_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The most tokens of a request, where that is less than the window; else empty.",
    )
    max_output_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_reserve = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=(
            "Tokens of the window that its answer takes; 0: output is separate; empty when unknown."
        ),
    )
    input_price = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text="Per million tokens."
    )
    cached_input_price = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="Per million tokens that are read from a cache; empty when unknown.",
    )
    cache_write_price = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="Per million tokens that are written to a cache; empty when unknown.",
    )
    output_price = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text="Per million tokens."
    )
    price_tiers = PriceTiersField(
        default=list,
        blank=True,
        help_text=(
            'Other prices for long requests: [{"above": 200000, "input": "2.50", "output": "15",'
            ' "cached_input": "0.25"}]; "above" is a number of input tokens.'
        ),
    )
    supports_tools = models.BooleanField(
        null=True,
        blank=True,
        help_text="Unknown: tools are offered, until the provider refuses them for this model.",
    )
    supports_images = models.BooleanField(
        null=True,
        blank=True,
        help_text="Unknown: images are sent, until the provider refuses them for this model.",
    )
    policy = models.CharField(
        max_length=64, blank=True, help_text="Compaction policy; empty: the project's."
    )
    summary_model = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    is_active = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    catalog_values = models.JSONField(
        default=dict,
        editable=False,
        help_text="What the catalog last wrote, to tell an operator's edit.",
    )
    values_source = models.CharField(
        max_length=200, blank=True, editable=False, help_text="Empty: the catalog."
    )
    values_date = models.DateField(
        null=True,
        blank=True,
        editable=False,
        help_text="When limits and prices were last compared with their source.",
    )

    objects = AiModelQuerySet.as_manager()

    class Meta:
        verbose_name = "language model"
        constraints = [
            models.UniqueConstraint(fields=["provider", "name"], name="one_model_a_name"),
            # At most one row in which is_default is true; the others do not count.
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="one_default_model"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider.name}/{self.name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the model. A new one takes the limits that are left empty from the catalog."""
        if self._state.adding:
            self._fill_limits()
        is_learned = "output_limit" in self.provider.list_learned().get(self.name, {})
        same_rows = AiModel.objects.filter(pk=self.pk, max_output_tokens=self.max_output_tokens)
        is_edited = is_learned and not same_rows.exists()
        super().save(*args, **kwargs)
        if is_edited:
            self.provider.keep_learned(self.name, {"output_limit": None})

    def _fill_limits(self) -> None:
        catalog_model = catalog.look_up_model(self.name)
        values = catalog_model.values if catalog_model else {}
        for name in ("context_window_size", "max_input_tokens", "output_reserve"):
            if getattr(self, name) is None:
                setattr(self, name, values.get(name))

    def clean(self) -> None:
        """Refuse a context window and an input of zero tokens; unknown ones are left empty."""
        if self.context_window_size == 0:
            message = "A context window has at least one token; leave it empty when unknown."
            raise ValidationError({"context_window_size": message})
        if self.max_input_tokens == 0:
            message = "A request has at least one token; leave this empty without a limit."
            raise ValidationError({"max_input_tokens": message})

    @property
    def reasoning(self) -> Reasoning:
        """How it reasons, by its name and its provider's protocol."""
        return find_reasoning(self.provider.protocol, self.name)

    @property
    def may_call_tools(self) -> bool:
        """Whether tools are offered: also where nobody has said yet that it calls any."""
        return self.supports_tools is not False

    def note_refused(self, ability: Ability) -> bool:
        """Store that it has no such ability, if that was unknown; return whether it was."""
        unknown_rows = AiModel.objects.filter(pk=self.pk, **{ability: None})
        was_unknown = bool(unknown_rows.update(**{ability: False}))
        if was_unknown:
            setattr(self, ability, False)
            self.provider.keep_learned(self.name, {ability: False})
        return was_unknown

    def forget_refused(self, ability: Ability) -> None:
        """Let it be unknown again whether it has an ability."""
        self.provider.keep_learned(self.name, {ability: None})
        AiModel.objects.filter(pk=self.pk, **{ability: False}).update(**{ability: None})
        setattr(self, ability, None)

    @property
    def may_see_images(self) -> bool:
        """Whether images are sent: also where nobody has said yet that it sees any."""
        return self.supports_images is not False

    @property
    def request_limit(self) -> int | None:
        """The most tokens that a request may have; None where the window is unknown."""
        limits = (self.context_window_size, self.max_input_tokens)
        return min((limit for limit in limits if limit), default=None)

    def make_default(self) -> None:
        """Make this the model of new sessions."""
        with transaction.atomic():
            # The old default goes first: a constraint allows one default at any time.
            AiModel.objects.filter(is_default=True).exclude(pk=self.pk).update(is_default=False)
            AiModel.objects.filter(pk=self.pk).update(is_default=True)
        self.is_default = True
