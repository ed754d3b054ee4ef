"""Refuse arguments of a wrong type in plain words, before PostgreSQL says that it knows no such function."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cache, wraps
from inspect import Parameter, isfunction, signature
from numbers import Integral
from typing import Any, TypeVar, get_args, get_type_hints

from pytrickle.errors import InvalidArgument, PytrickleError

Class = TypeVar("Class", bound=type)
Kinds = frozenset[str]

# What an annotation is called in a sentence, and what to give instead.
_WORDS = {
    "timedelta": ("a length of time", "Give timedelta(minutes=5), for example, or '5 minutes'."),
    "datetime": ("a moment", "Give a datetime with a UTC offset, or a text such as '2026-03-01 12:00Z'."),
    "str": ("a text", "Put it in quotes, as 'orders' is."),
    "int": ("a whole number", "Give it without quotes, as 20 is."),
    "bool": ("True or False", "Give it without quotes."),
    "Sequence[str]": ("a list of texts", "Give a list such as ['orders', 'order_lines']."),
    "Sequence[int]": ("a list of whole numbers", "Give a list such as [1, 2]."),
}
_TESTS: Mapping[str, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    # PostgreSQL reads a text as one.
    "timedelta": lambda value: isinstance(value, timedelta | str),
    "Sequence[str]": lambda value: _all(value, "str"),
    "Sequence[int]": lambda value: not isinstance(value, str) and _all(value, "int"),
}
_READ_FROM_TEXT = frozenset({"timedelta", "datetime"})
# Of a text that is no value of a type, or whose value is out of range.
_UNREADABLE = frozenset({"22007", "22008", "22015", "22P02"})


def checked(found: Class) -> Class:
    """Have all public methods of a class raise InvalidArgument for an argument that is not what its annotation says.

    Annotations are read as they are written, at the first call. Where one names another type, anything goes, and None
    is left to the method.
    """
    for name in dir(found):
        method = getattr(found, name)
        if not name.startswith("_") and isfunction(method):
            setattr(found, name, _checking(method))
    return found


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*values: Any, **named: Any) -> Any:
        kinds = _kinds(method)
        given = {**dict(zip(kinds, values, strict=False)), **named}
        for name, value in given.items():
            _check(name, kinds.get(name, frozenset()), value)
        try:
            return method(*values, **named)
        except PytrickleError as error:
            if error.sqlstate in _UNREADABLE:
                _name_unreadable(given, kinds, error)
            raise

    return call


@cache
def _kinds(method: Callable[..., Any]) -> Mapping[str, Kinds]:
    """Return what each parameter of a method may be, in their order; options that it takes by name come last."""
    found: dict[str, Kinds] = {}
    for parameter in signature(method).parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            options = method.__globals__[str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")]
            found |= {name: _named(get_args(hint) or (hint,)) for name, hint in get_type_hints(options).items()}
        else:
            written = str(parameter.annotation).replace("Moment", "datetime | int")
            found[parameter.name] = frozenset(written.split(" | "))
    return found


def _named(types: Iterable[Any]) -> Kinds:
    return frozenset(each.__name__ for each in types)


def _check(name: str, kinds: Kinds, value: object) -> None:
    kinds -= {"None", "NoneType"}
    if value is None or not kinds or not kinds <= _TESTS.keys():
        return
    if not any(_TESTS[kind](value) for kind in kinds):
        raise _refused(name, kinds, value)


def _refused(name: str, kinds: Kinds, value: object) -> InvalidArgument:
    wanted, hint = next(words for kind, words in _WORDS.items() if kind in kinds)
    return InvalidArgument(f"{name} must be {wanted}, not {reprlib.repr(value)}.", hint)


def _name_unreadable(given: Mapping[str, object], kinds: Mapping[str, Kinds], error: PytrickleError) -> None:
    """Say which text is no length of time or no moment, if it is one of those that were given."""
    for name, value in given.items():
        found = kinds.get(name, frozenset()) & _READ_FROM_TEXT
        if found and isinstance(value, str) and value in error.message:
            raise _refused(name, found, value) from error


def _all(value: object, kind: str) -> bool:
    """Return whether a value is a list of this kind; what can be read only once is not looked into."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_TESTS[kind], value))
    return isinstance(value, Iterable)
