"""Kubernetes takes the manifests, and what they name is there."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import kubernetes_validate
import pytest
import yaml

from pytrickle.compute.spark.session import CONFIGURATION
from pytrickle.config import Settings
from tests.documents import ROOT

VERSION = "1.30"
MANIFESTS = sorted((ROOT / "examples/kubernetes").glob("*.yaml"))
RESOURCES = {path.name: list(yaml.safe_load_all(path.read_text())) for path in MANIFESTS}
EVERY = [resource for resources in RESOURCES.values() for resource in resources]
DEPLOYMENTS = [resource for resource in EVERY if resource["kind"] == "Deployment"]


def names(kind: str) -> set[str]:
    return {resource["metadata"]["name"] for resource in EVERY if resource["kind"] == kind}


def named(resource: dict[str, Any]) -> str:
    return f"{resource['kind']} {resource['metadata']['name']}"


@pytest.mark.parametrize("resource", EVERY, ids=named)
def test_every_resource_has_the_form_that_kubernetes_demands(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, VERSION, strict=True)


def test_a_misspelled_field_would_be_refused() -> None:
    deployment = {**DEPLOYMENTS[0], "spec": {**DEPLOYMENTS[0]["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSION, strict=True)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=named)
def test_a_deployment_names_what_is_there(deployment: dict[str, Any]) -> None:
    template = deployment["spec"]["template"]
    pod = template["spec"]
    assert deployment["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    assert {pod.get("serviceAccountName", "pytrickle-spark")} <= names("ServiceAccount")
    assert {volume["configMap"]["name"] for volume in pod.get("volumes", ())} <= names("ConfigMap")
    for variable in environment(pod):
        secret = variable.get("valueFrom", {}).get("secretKeyRef")
        assert secret is None or secret["name"] in names("Secret")


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=named)
def test_the_environment_of_a_deployment_makes_settings(deployment: dict[str, Any]) -> None:
    known = {f"PYTRICKLE_{setting.name.upper()}" for setting in fields(Settings)}
    environ = {
        variable["name"]: variable.get("value", "") for variable in environment(deployment["spec"]["template"]["spec"])
    }
    assert {name for name in environ if name.startswith("PYTRICKLE_")} <= known
    assert Settings.from_environment(environ=environ).spark_master == environ["PYTRICKLE_SPARK_MASTER"]


def test_the_executors_find_the_driver_by_a_service_of_its_ports() -> None:
    (service,) = (resource for resource in EVERY if resource["kind"] == "Service")
    (deployment,) = (one for one in DEPLOYMENTS if one["spec"]["template"]["spec"].get("serviceAccountName"))
    (defaults,) = (resource["data"]["spark-defaults.conf"] for resource in EVERY if resource["kind"] == "ConfigMap")
    told = dict(line.split(maxsplit=1) for line in defaults.splitlines())
    assert told["spark.driver.host"] == service["metadata"]["name"]
    ports = {told["spark.driver.port"], told["spark.driver.blockManager.port"]}
    assert {str(port["port"]) for port in service["spec"]["ports"]} == ports
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {str(port["containerPort"]) for port in container["ports"]} == ports
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert not told.keys() & CONFIGURATION.keys(), "what the session sets itself would win"


def environment(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for container in pod["containers"]:
        yield from container["env"]
