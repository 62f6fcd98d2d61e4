"""Policies in the document that writes an installation down: their knobs beside `base`."""

from collections.abc import Iterable, Mapping

from django.core.exceptions import ValidationError

from chatcore.setup.sections import Author, Section, SetupRefused, refuse
from compaction.core.presets import ONECLAW
from compaction.models import CompactionPolicy


class Policies(Section):
    """The operator's own policies: a preset as `base`, and what differs, as the policy has it."""

    name = "policies"
    model = CompactionPolicy
    permissions = ("compaction.add_compactionpolicy", "compaction.change_compactionpolicy")

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]  # systems add theirs
        """The base, and all groups of settings."""
        return ("base", *ONECLAW.to_dict())

    def find_row(self, name: str) -> CompactionPolicy:
        row = CompactionPolicy.objects.filter(name=name).first()
        return row or CompactionPolicy(name=name)

    def list_rows(self) -> Iterable[CompactionPolicy]:
        return CompactionPolicy.objects.filter(is_active=True).order_by("name")

    def describe_row(self, row: CompactionPolicy) -> dict[str, object]:
        return {"base": row.base, **row.overrides}

    def set_values(
        self, row: CompactionPolicy, values: Mapping[str, object], author: Author
    ) -> bool:
        """Set the base and the knobs. A group of knobs is set as a whole."""
        place = f"{self.name}.{row.name}"
        before = None if row._state.adding or not row.is_active else self.describe_row(row)
        knobs = {name: value for name, value in values.items() if name != "base"}
        base = values.get("base", row.base)
        if not isinstance(base, str):
            raise SetupRefused(f"{place}.base", "Must be a text.")
        row.base = base
        row.overrides = {
            name: value for name, value in {**row.overrides, **knobs}.items() if value is not None
        }
        row.is_active = True
        try:
            row.full_clean()
        except ValidationError as error:
            raise refuse(error, place) from None
        if before == self.describe_row(row):
            return False
        row.save()
        return True

    def get_default(self, field_name: str) -> object:
        return super().get_default(field_name) if field_name == "base" else None

    def deactivate(self, row: CompactionPolicy) -> None:
        CompactionPolicy.objects.filter(pk=row.pk).update(is_active=False)
