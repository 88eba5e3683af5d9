"""What the image and the compose file run, run here without a container: the command, the health check, the key."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
KEY = "a-key-of-the-clients-of-this-gateway-0123456789"


def instruction(name: str) -> list[str]:
    """Give the words of the last instruction in the form of a list."""
    return json.loads(re.findall(rf"{name} (\[.*\])$", DOCKERFILE, re.MULTILINE)[-1])


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_the_command_of_the_image_serves_with_a_key_and_passes_its_health_check(tmp_path):
    program, *arguments = (*instruction("ENTRYPOINT"), *instruction("CMD"))
    assert program == "segue"
    port = free_port()
    config = tmp_path / "gateway.toml"
    config.write_text((ROOT / "deploy" / "gateway.toml").read_text().replace("0.0.0.0:8787", f"127.0.0.1:{port}"))
    words = [str(config) if word == "/etc/segue/gateway.toml" else word for word in arguments]
    environment = {**os.environ, "GATEWAY_KEY": KEY, "GATEWAY_STORE": f"sqlite:{tmp_path / 'gateway.db'}"}
    with subprocess.Popen([sys.executable, "-m", "segue", *words], env=environment, cwd=tmp_path) as gateway:
        try:
            (check, _) = re.findall(r"CMD (\[.*\])", DOCKERFILE)
            health = [word.replace("8787", str(port)) for word in json.loads(check)]
            for _ in range(600):
                healthy = (
                    subprocess.run([sys.executable, *health[1:]], capture_output=True, check=False).returncode == 0
                )
                if healthy or gateway.poll() is not None:
                    break
                time.sleep(0.1)
            assert healthy
            assert httpx2.get(f"http://127.0.0.1:{port}/v1/models").status_code == 401
            allowed = httpx2.get(f"http://127.0.0.1:{port}/v1/models", headers={"authorization": f"Bearer {KEY}"})
            assert allowed.status_code == 200
            assert (tmp_path / "gateway.db").exists()
        finally:
            gateway.terminate()


def test_the_image_does_not_run_as_root_and_writes_only_its_state():
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)[-1] not in ("root", "0")
    assert "VOLUME /var/lib/segue" in DOCKERFILE
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())


def test_images_are_named_by_their_digests():
    named = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    named += [service["image"] for service in compose["services"].values() if "image" in service]
    assert len(named) == 4
    for name in named:
        assert re.fullmatch(r"[a-z]+:[0-9][\w.-]*@sha256:[0-9a-f]{64}", name)


def test_the_load_balancer_names_the_client_and_nobody_else_can():
    config = (ROOT / "deploy" / "nginx.conf").read_text()
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in config
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        if "build" in service:
            assert service["environment"]["FORWARDED_ALLOW_IPS"] == "*", name
            assert "ports" not in service


def test_the_services_of_the_compose_file_fit_together():
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    services = compose["services"]
    gateways = [name for name, service in services.items() if "build" in service]
    assert len(gateways) == 2
    config = (ROOT / "deploy" / "gateway.toml").read_text()
    for name in gateways:
        service = services[name]
        assert (ROOT / "deploy" / service["build"] / "Dockerfile").resolve() == ROOT / "Dockerfile"
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert {f"env:{variable}" for variable in ("GATEWAY_KEY", "GATEWAY_STORE")} <= set(
            re.findall(r"env:\w+", config)
        )
        assert set(service["depends_on"]) <= set(services)
    balancer = (ROOT / "deploy" / "nginx.conf").read_text()
    assert re.findall(r"server (\S+):8787 ", balancer) == gateways
    assert services["balancer"]["ports"] == ["127.0.0.1:8787:8787"], "nothing else is reachable from outside"
    assert all("ports" not in service for name, service in services.items() if name != "balancer")


def test_the_configuration_of_the_load_balancer_is_valid(tmp_path):
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("with a load balancer (no nginx)")
    config = (
        (ROOT / "deploy" / "nginx.conf").read_text().replace("gateway-1", "127.0.0.1").replace("gateway-2", "localhost")
    )
    path = tmp_path / "nginx.conf"
    path.write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\n{config}")
    done = subprocess.run(
        [program, "-t", "-c", str(path), "-p", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
