"""Deployment of a cluster: composition, manifests and files of the fronts, compared with each other."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from api.process.config import PREFIX, VARIABLES, Settings, load_settings
from tests.support.haproxy import CONFIGURATION, HAPROXY

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BASE, EXAMPLE = DEPLOY / "kubernetes" / "base", DEPLOY / "kubernetes" / "overlays" / "example"
KNOWN = {PREFIX + variable.name for variable in VARIABLES}
SECRET_KEY = base64.b64encode(bytes(32)).decode()
SECRETS = {
    "TRUNKLINE_DATABASE_URL": "postgresql+asyncpg://trunkline:secret@192.0.2.2/trunkline",
    "TRUNKLINE_SECRET_KEY": SECRET_KEY,
}
# What a node writes itself before it ends, after its calls.
_END_S = 20
_LEAVING_S = 2
# Of Kubernetes: the oldest for which the manifests are meant, and the newest that the validator knows.
VERSIONS = ("1.32", kubernetes_validate.latest_version())


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def env_file(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def haproxy_nodes(path: Path) -> dict[str, str]:
    """Name and address of each node in a list for HAProxy."""
    return dict(re.findall(r"(?m)^ +server (\S+) (\S+)", path.read_text()))


def said(dockerfile: Path, instruction: str) -> list[str]:
    text = re.sub(r"\\\n\s*", " ", dockerfile.read_text())
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{instruction} ")]


@pytest.fixture(scope="module")
def composition() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())
    return found


@pytest.fixture(scope="module")
def nodes(composition: dict[str, Any]) -> dict[str, Settings]:
    """The settings of each node, with a value for each variable that the shell must give."""
    given = {"POSTGRES_PASSWORD": "secret", "TRUNKLINE_SECRET_KEY": SECRET_KEY}
    services = composition["services"]
    return {name: load_settings(substituted(services[name]["environment"], given)) for name in ("a", "b")}


class TestComposition:
    """compose.cluster.yaml."""

    def test_its_nodes_take_their_settings(self, nodes: dict[str, Settings]) -> None:
        for name, settings in nodes.items():
            assert settings.name_warnings() == []
            assert settings.node == name
            assert not settings.sandbox_carrier
            assert settings.database_url.startswith("postgresql+asyncpg://")
            assert settings.recordings_store is not None

    def test_each_part_is_where_the_others_look_for_it(
        self, composition: dict[str, Any], nodes: dict[str, Settings]
    ) -> None:
        services = composition["services"]
        where = {
            name: service["networks"]["cluster"]["ipv4_address"]
            for name, service in services.items()
            if isinstance(service["networks"], dict)
        }
        (network,) = composition["networks"]["cluster"]["ipam"]["config"]
        assert len(set(where.values())) == len(where)
        for address in where.values():
            assert ip_address(address) in ip_network(network["subnet"])
            # The runtime gives out addresses of this range.
            assert ip_address(address) not in ip_network(network["ip_range"])
        for name, settings in nodes.items():
            sip = {(listen.transport, listen.host, listen.port) for listen in settings.sip_listen}
            assert sip == {("udp", where[name], 5060), ("tcp", where[name], 5060)}
            assert settings.rtp_listen == settings.http_listen.host == where[name]
            assert [str(front) for front in settings.sip_fronts] == [f"{where['sip']}/32"]
            assert f"{where['sip']}:5060" in (settings.sip_outbound_proxy or "")
            assert f"@{where['database']}/" in settings.database_url
            trusted = settings.trusted_sources
            assert [network for network in trusted if ip_address(where["api"]) in network] == []
        store = services["a"]["environment"]["AWS_ENDPOINT_URL"]
        assert store == f"http://{where['store']}:5000"
        bucket = nodes["a"].recordings_store
        assert bucket is not None and f'"{store}/{bucket.bucket}"' in services["bucket"]["command"][-1]
        assert f"FRONT_LISTEN=udp:{where['sip']}:5060" in services["sip"]["command"]
        assert haproxy_nodes(DEPLOY / "compose" / "nodes.cfg") == {
            name: str(settings.http_listen) for name, settings in nodes.items()
        }
        listed = re.findall(r"(?m)^1 (\S+)$", (DEPLOY / "compose" / "dispatcher.list").read_text())
        assert listed == [f"sip:{where[name]}:5060" for name in nodes]

    def test_its_files_are_mounted_where_they_are_read(self, composition: dict[str, Any]) -> None:
        services = composition["services"]
        mounted = {}
        for service in services.values():
            for source, target, *_ in (mount.split(":") for mount in service.get("volumes", ())):
                if source.startswith("."):
                    assert (ROOT / source).is_file()
                    mounted[target] = (ROOT / source).relative_to(DEPLOY).as_posix()
                else:
                    assert source in composition["volumes"]
            if isinstance(service.get("build"), str):
                assert (ROOT / service["build"] / "Dockerfile").is_file()
        command = services["sip"]["command"]
        assert mounted[command[command.index("-f") + 1]] == "kamailio/kamailio.cfg"
        (nodes,) = re.findall(
            r'^#!define NODES "(\S+)"$', (DEPLOY / "kamailio/kamailio.cfg").read_text(), re.MULTILINE
        )
        assert mounted[nodes] == "compose/dispatcher.list"
        read = re.findall(r'"-f", "([^"]+)"', said(DEPLOY / "haproxy" / "Dockerfile", "CMD")[0])
        assert [mounted[path] for path in read] == ["haproxy/haproxy.cfg", "compose/nodes.cfg"]

    def test_it_has_no_secret_and_gives_nothing_that_is_not_needed(self, composition: dict[str, Any]) -> None:
        text = (ROOT / "compose.cluster.yaml").read_text()
        for name in ("POSTGRES_PASSWORD", "TRUNKLINE_SECRET_KEY"):
            uses = re.findall(rf"\$\{{{name}[^}}]*\}}", text)
            assert uses and all(use.startswith(f"${{{name}:?") for use in uses)
        for name, service in composition["services"].items():
            if name in ("database", "store"):
                continue
            assert service["read_only"] is True and service["cap_drop"] == ["ALL"], name
            assert all("noexec" in mount and "nosuid" in mount for mount in service.get("tmpfs", ())), name
        (port,) = composition["services"]["api"]["ports"]
        assert port == "${API_LISTEN:-127.0.0.1:8080}:8080"

    def test_its_nodes_drain(self, composition: dict[str, Any], nodes: dict[str, Settings]) -> None:
        for name, settings in nodes.items():
            grace_s = seconds(composition["services"][name]["stop_grace_period"])
            assert grace_s >= _LEAVING_S + settings.drain_s + _END_S


def substituted(environment: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The environment as Compose gives it: with variables of the shell, or their defaults."""

    def value(match: re.Match[str]) -> str:
        name, operator, default = match.groups()
        assert operator == ":-" or name in given, f"{name} has neither value nor default"
        return given.get(name, default)

    return {name: re.sub(r"\$\{(\w+)(:[-?])([^}]*)\}", value, text) for name, text in environment.items()}


def test_the_images_have_what_a_cluster_needs() -> None:
    """The image of the nodes has the libraries of PostgreSQL and S3; those of the fronts have its base."""
    assert any(".[postgres,s3]" in command for command in said(ROOT / "Dockerfile", "RUN"))
    bases = {tuple(said(path, "ARG")) for path in (ROOT / "Dockerfile", *DEPLOY.glob("*/Dockerfile"))}
    assert len(bases) == 1
    users = set()
    for path in (DEPLOY / "kamailio" / "Dockerfile", DEPLOY / "haproxy" / "Dockerfile"):
        for name in said(path, "COPY")[0].split()[:-1]:
            assert (path.parent / name).is_file()
        users.add(said(path, "USER")[0])
    assert len(users) == 2 and all(re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user) for user in users)


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed (Debian: haproxy)")
@pytest.mark.parametrize("nodes", ["haproxy/nodes.cfg", "compose/nodes.cfg", "kubernetes/base/nodes.cfg"])
def test_haproxy_takes_its_configuration(nodes: str) -> None:
    assert HAPROXY is not None
    checked = subprocess.run(
        [HAPROXY, "-c", "-V", "-f", str(CONFIGURATION), "-f", str(DEPLOY / nodes)],
        env={"API_LISTEN": "127.0.0.1:8080"},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
    # There is no such DNS here, and a machine without a route cannot even ask it.
    absent = ("could not resolve", "can't connect socket for nameserver")
    warnings = [line for line in checked.stderr.splitlines() if not any(word in line for word in absent)]
    assert not [line for line in warnings if "[WARNING]" in line]


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((BASE / name).read_text()))


def of_kind(kind: str, name: str = "nodes.yaml") -> dict[str, Any]:
    (found,) = (manifest for manifest in manifests(name) if manifest["kind"] == kind)
    return found


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    found: dict[str, Any] = of_kind("StatefulSet")["spec"]["template"]["spec"]
    return found


@pytest.fixture(scope="module")
def settings(pod: dict[str, Any]) -> Settings:
    """The settings of the node trunkline-0, on a machine of the example."""
    (container,) = pod["containers"]
    fields = {"status.podIP": "192.0.2.11", "metadata.name": "trunkline-0"}
    own: dict[str, str] = {}
    for variable in container["env"]:
        if "value" in variable:
            own[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda match: own[match[1]], variable["value"])
        else:
            own[variable["name"]] = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
    shared = {**env_file(BASE / "trunkline.env"), **env_file(EXAMPLE / "trunkline.env")}
    secrets = env_file(EXAMPLE / "secret.env.example")
    assert set(SECRETS) <= set(secrets) and not any(secrets.values())
    return load_settings({**shared, **SECRETS, **own})


class TestManifests:
    """deploy/kubernetes, as it stands in files."""

    def test_a_node_takes_its_settings(self, settings: Settings) -> None:
        assert settings.name_warnings() == []
        assert settings.node == "trunkline-0"
        assert settings.node_url == "http://192.0.2.11:8080"
        assert settings.rtp_listen == "192.0.2.11"
        assert not settings.sandbox_carrier
        front = settings.sip_outbound_proxy
        assert front is not None and len(settings.sip_fronts) == 1
        assert str(settings.sip_fronts[0].network_address) in front
        # The HTTP front may come from the address of any machine.
        assert settings.trusted_sources == ()

    def test_a_node_has_the_network_of_a_machine_to_itself(
        self, pod: dict[str, Any], settings: Settings
    ) -> None:
        assert pod["hostNetwork"] is True and pod["dnsPolicy"] == "ClusterFirstWithHostNet"
        (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        labels = of_kind("StatefulSet")["spec"]["template"]["metadata"]["labels"]
        assert apart["topologyKey"] == "kubernetes.io/hostname"
        assert apart["labelSelector"]["matchLabels"] == labels
        (container,) = pod["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports["http"] == settings.http_listen.port
        assert {ports["sip"], ports["sip-tcp"]} == {listen.port for listen in settings.sip_listen}
        front = of_kind("DaemonSet", "sip-front.yaml")["spec"]["template"]["spec"]
        taken = [port["containerPort"] for one in front["containers"] for port in one.get("ports", ())]
        assert taken and not set(taken) & set(ports.values())
        for probe, path in (("startup", "/health"), ("readiness", "/ready"), ("liveness", "/health")):
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "http"}

    def test_a_node_drains(self, pod: dict[str, Any], settings: Settings) -> None:
        (container,) = pod["containers"]
        command, before_s = container["lifecycle"]["preStop"]["exec"]["command"]
        assert command == "sleep"
        ends_s = int(before_s) + _LEAVING_S + settings.drain_s + _END_S
        assert pod["terminationGracePeriodSeconds"] >= ends_s
        budget = of_kind("PodDisruptionBudget")["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["selector"] == of_kind("StatefulSet")["spec"]["selector"]

    def test_the_fronts_find_the_nodes(self, settings: Settings) -> None:
        nodes, service = of_kind("StatefulSet"), of_kind("Service")
        name, namespace = (
            service["metadata"]["name"],
            yaml.safe_load((EXAMPLE / "kustomization.yaml").read_text())["namespace"],
        )
        assert nodes["spec"]["serviceName"] == name
        # A headless one, of all nodes in whatever state.
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True
        assert service["spec"]["selector"] == nodes["spec"]["selector"]["matchLabels"]
        replicas = [f"{nodes['metadata']['name']}-{number}" for number in range(nodes["spec"]["replicas"])]
        assert list(haproxy_nodes(BASE / "nodes.cfg").items()) == [
            (replica, f"{replica}.{name}.{namespace}.svc.cluster.local:{settings.http_listen.port}")
            for replica in replicas
        ]
        pod = of_kind("DaemonSet", "sip-front.yaml")["spec"]["template"]["spec"]
        kamailio, watcher = pod["containers"]
        (first,) = pod["initContainers"]
        (listed,) = re.findall(r'NODES="(\S+)"', " ".join(kamailio["command"]))
        (port,) = {str(listen.port) for listen in settings.sip_listen}
        script = ["sh", "/etc/kamailio/nodes.sh", name, port, listed]
        assert watcher["command"] == script and first["command"] == [*script, "once"]

    def test_what_is_mounted_exists(self) -> None:
        generated: dict[str, set[str]] = {}
        for folder in (DEPLOY / "kamailio", DEPLOY / "haproxy", BASE):
            for one in yaml.safe_load((folder / "kustomization.yaml").read_text())["configMapGenerator"]:
                files = one.get("files", ())
                assert all((folder / name).is_file() for name in files)
                generated[one["name"]] = set(files)
        read: set[str] = set()
        for name in ("sip-front.yaml", "http-front.yaml"):
            for manifest in manifests(name):
                pod = manifest["spec"].get("template", {}).get("spec")
                for container in pod["containers"] if pod else ():
                    folders = files_of(pod, container, generated)
                    for path in re.findall(r"/etc/\S+\.(?:cfg|sh)", " ".join(container["command"])):
                        read.add(path)
                        assert Path(path).name in folders[str(Path(path).parent)], path
        assert {Path(path).name for path in read} == {"haproxy.cfg", "nodes.cfg", "kamailio.cfg", "nodes.sh"}

    def test_no_container_has_a_privilege(self) -> None:
        images = {
            f"deploy/{name}": f"trunkline-{front}-front"
            for name, front in (("kamailio", "sip"), ("haproxy", "http"))
        }
        users = {image: said(ROOT / folder / "Dockerfile", "USER")[0] for folder, image in images.items()}
        users["trunkline"] = said(ROOT / "Dockerfile", "USER")[0]
        for pod in pods():
            assert pod["automountServiceAccountToken"] is False
            outer = pod["securityContext"]
            assert outer["runAsNonRoot"] is True
            for container in [*pod.get("initContainers", ()), *pod["containers"]]:
                assert container["securityContext"] == {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                }
                assert users[container["image"]] == f"{outer['runAsUser']}:{outer['runAsGroup']}"


def pods() -> Iterator[dict[str, Any]]:
    for kind, name in (
        ("StatefulSet", "nodes.yaml"),
        ("DaemonSet", "sip-front.yaml"),
        ("Deployment", "http-front.yaml"),
    ):
        yield of_kind(kind, name)["spec"]["template"]["spec"]


def files_of(
    pod: Mapping[str, Any], container: Mapping[str, Any], generated: Mapping[str, set[str]]
) -> dict[str, set[str]]:
    """The files of each folder that a container has from a ConfigMap."""
    maps = {one["name"]: one["configMap"]["name"] for one in pod["volumes"] if "configMap" in one}
    return {
        mount["mountPath"]: generated[maps[mount["name"]]]
        for mount in container["volumeMounts"]
        if mount["name"] in maps
    }


# `make` installs none: Debian has that of 2021 alone. The other tests here need none.
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_the_manifests(tmp_path: Path, version: str) -> None:
    """The example, as Kustomize makes it, is valid by the schemas of Kubernetes, and names what it makes."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    example = tmp_path / EXAMPLE.relative_to(ROOT)
    (example / "secret.env").write_text("".join(f"{name}={text}\n" for name, text in SECRETS.items()))
    made = subprocess.run(["kubectl", "kustomize", str(example)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    built = list(yaml.safe_load_all(made.stdout))
    for manifest in built:
        kubernetes_validate.validate(manifest, version, strict=True)
        if manifest["kind"] != "Namespace":
            assert manifest["metadata"]["namespace"] == "trunkline"
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in built}
    used = re.findall(r"(?m)^ +- (configMap|secret)Ref:\n +name: (\S+)$", made.stdout)
    used += re.findall(r"(?m)^ +- (configMap):\n(?: +\w+: .*\n)*? +name: (\S+)$", made.stdout)
    assert len(used) == 5
    assert {(kind[0].upper() + kind[1:], name) for kind, name in used} <= names
    (settings,) = (one for one in built if one["kind"] == "ConfigMap" and "TRUNKLINE_DRAIN_S" in one["data"])
    assert {name for name in settings["data"] if name.startswith(PREFIX)} <= KNOWN
