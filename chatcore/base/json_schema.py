"""Check values against JSON schemas."""

from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.validators import extend

# JSON Schema 2020-12 takes 3.0 for an integer, and who asked for one would then receive a float.
# Draft 4 does not.
Validator = extend(Draft202012Validator, type_checker=Draft4Validator.TYPE_CHECKER)
