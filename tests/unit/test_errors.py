"""The error tree: what is drawn is what is there, and each error tells what to do."""

import pickle
import re
import traceback

import pytest

from pytrickle import errors
from pytrickle.errors import PytrickleError


def _tree(kind: type[PytrickleError]) -> dict[str, set[str]]:
    below = kind.__subclasses__()
    branches = {kind.__name__: {child.__name__ for child in below}} if below else {}
    for child in below:
        branches |= _tree(child)
    return branches


def _drawn() -> dict[str, set[str]]:
    branches: dict[str, set[str]] = {"PytrickleError": set()}
    path = ["PytrickleError"]
    for indent, first, others in re.findall(
        r"^    ([│ ]*)[├└]── (\w+)((?:\*?, \w+)*)", errors.__doc__ or "", re.MULTILINE
    ):
        path = [*path[: len(indent) // 4 + 1], first]
        branches.setdefault(path[-2], set()).update({first, *re.findall(r"\w+", others)})
    return branches


def _every_error() -> list[type[PytrickleError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PytrickleError)]


def test_drawn_tree_is_the_class_tree() -> None:
    assert _drawn() == _tree(PytrickleError)


def test_only_conflicts_outages_and_what_is_yet_to_come_are_retryable() -> None:
    retryable = {kind for kind in _every_error() if kind("it failed").retryable}
    starred = set(re.findall(r"(\w+)\*", errors.__doc__ or ""))
    assert {kind.__name__ for kind in retryable} == starred
    yet_to_come = {errors.NotYet, errors.NotFresh, errors.WaitTimeout, errors.RestoreUnderWay}
    outages = {errors.ConnectionLost, errors.SparkCannotConnect, errors.SparkStarved, errors.SparkLost}
    conflicts = {errors.RefreshConflict, errors.SerializationFailure, errors.LockTimeout}
    server = {errors.Canceled, errors.ServerExhausted, errors.DiskFull}
    assert retryable == conflicts | outages | server | yet_to_come


def test_retryable_can_be_decided_per_error() -> None:
    assert errors.SparkFailed("an executor was lost", retryable=True).retryable
    assert not errors.ConnectionLost("gone", retryable=False).retryable


def test_every_error_says_what_to_do() -> None:
    abstract = {PytrickleError, errors.ConfigError, errors.CatalogError, errors.PlanError, errors.RefreshError}
    abstract |= {errors.WatermarkError}
    given_when_raised = {errors.CatalogVersionMismatch}
    assert {kind for kind in _every_error() if not kind("it failed").hint} == abstract | given_when_raised


def test_a_traceback_shows_the_hint() -> None:
    shown = traceback.format_exception(errors.NotInstalled("no catalog", "ask the owner"))
    assert "".join(shown).endswith("NotInstalled: no catalog\nask the owner\n")


def test_given_hint_replaces_the_default() -> None:
    assert "pytrickle install" in (errors.NotInstalled("no catalog").hint or "")
    assert errors.NotInstalled("no catalog", "ask the owner").hint == "ask the owner"


@pytest.mark.parametrize("kind", _every_error(), ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling(kind: type[PytrickleError]) -> None:
    error = kind("it failed", hint="do this", sqlstate="22000")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert vars(copy) == vars(error)
    assert str(copy) == "it failed"
