"""The tool `calculate`: evaluate arithmetic without executing any code.

Python parses the expression, and only known nodes of the syntax tree are evaluated. Length and size
of numbers are bounded, because models write what strangers told them.
"""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from chatcore.tools.base import BuiltInTool, ToolError

MAX_CHARS = 500
MAX_BITS = 10_000  # of any integer on the way to the result; about 3,000 digits
MAX_FACTORIAL = 1_000
MAX_DECIMALS = 100

Number = int | float

_BINARY_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return the value: integers exactly, other numbers with 15 significant digits."""
    try:
        tree = ast.parse(arguments["expression"].strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(
            "This is not an arithmetic expression. Write one like (3 + 4) * sqrt(2)."
        ) from None
    try:
        value = _evaluate(tree.body)
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None
    except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"This cannot be calculated: {error}.") from None
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def _evaluate(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _check_bounds(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _check_bounds(_apply_operator(op, _evaluate(left), _evaluate(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _check_bounds(_FUNCTIONS[name](*[_evaluate(arg) for arg in args]))
    raise ToolError(
        f"Not allowed here: {ast.unparse(node)[:80]!r}. Known functions: {', '.join(_FUNCTIONS)}."
    )


def _apply_operator(op: ast.operator, left: Number, right: Number) -> object:
    if isinstance(op, ast.Pow):
        return _compute_power(left, right)
    if isinstance(op, ast.Mult):
        return left * right  # both are bounded, so the product has at most 2 * MAX_BITS
    if isinstance(op, ast.BitXor):
        raise ToolError("Write powers with **, not with ^.")
    if type(op) not in _BINARY_OPERATORS:
        raise ToolError("Only + - * / // % ** are known.")
    return _BINARY_OPERATORS[type(op)](left, right)


def _compute_power(base: Number, exponent: Number) -> object:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        # The check comes first: computing 9 ** 9 ** 9 would take all memory.
        result_bits = exponent * base.bit_length()
        if result_bits > 2 * MAX_BITS:
            raise ToolError(_TOO_LARGE)
    return base**exponent


def _compute_factorial(number: Number) -> int:
    if not isinstance(number, int) or not 0 <= number <= MAX_FACTORIAL:
        raise ToolError(f"factorial takes a whole number from 0 to {MAX_FACTORIAL}.")
    return math.factorial(number)


def _round_number(number: Number, decimals: Number = 0) -> Number:
    if not isinstance(decimals, int) or abs(decimals) > MAX_DECIMALS:
        raise ToolError(f"round takes a whole number of decimals, {MAX_DECIMALS} at most.")
    return round(number, decimals) if decimals else round(number)


def _check_bounds(value: Any) -> Number:
    if isinstance(value, complex):
        raise ToolError("The result is not a real number.")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ToolError(_TOO_LARGE)
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolError(_TOO_LARGE)
    return value


_TOO_LARGE = "The number is too large to calculate."
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": _round_number,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "factorial": _compute_factorial,
    "gcd": math.gcd,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "degrees": math.degrees,
    "radians": math.radians,
}

TOOL = BuiltInTool(
    name="calculate",
    title=_("Calculator"),
    description=(
        "Calculates an arithmetic expression: + - * / // % ** parentheses, pi, e, "
        "and functions such as sqrt, log, sin, round."
    ),
    parameters={
        "type": "object",
        "properties": {
            "expression": {
                "type": "string",
                "description": "For example (3 + 4) * sqrt(2) or 2 ** 64.",
                "minLength": 1,
                "maxLength": MAX_CHARS,
            }
        },
        "required": ["expression"],
        "additionalProperties": False,
    },
    run=run,
)
