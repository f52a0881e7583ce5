"""The files of `deploy/`: they parse, and what they name exists: metrics, routes, settings, options, files."""

import copy
import json
import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import click
import msgspec
import pytest
import yaml

from ranktron.cli.main import cli
from ranktron.service.config import Config
from ranktron.service.http.routes import actions

FOLDER = Path(__file__).parent.parent.parent / "deploy"
VARIABLES = {
    f"RANKTRON_{'TOKENS_FILE' if each.name == 'tokens' else each.name.upper()}"
    for each in msgspec.structs.fields(Config)
}


def text(name):
    return (FOLDER / name).read_text("utf-8")


def parsed_command(line):
    """The options of a `ranktron` command, as the command itself would read them, files aside."""
    program, name, *arguments = shlex.split(line)
    assert Path(program).name == "ranktron"
    command = copy.deepcopy(
        cli.get_command(click.Context(cli), name)
    )  # the files that it names are not on this machine
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            parameter.type = click.Path()
    return command.make_context(name, list(arguments)).params


@pytest.fixture
def metrics(talk):
    """The names of all samples that Prometheus may find."""
    found = set()
    for name, kind in re.findall(r"# TYPE (\S+) (\S+)", talk.request("GET", "/metrics").content.decode()):
        found |= {f"{name}{ending}" for ending in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return found


def expressions():
    for group in yaml.safe_load(text("alerts.yaml"))["groups"]:
        yield from [(rule["alert"], rule["expr"]) for rule in group["rules"]]
    for panel in json.loads(text("dashboard.json"))["panels"]:
        yield from [(panel["title"], target["expr"]) for target in panel["targets"]]


def test_alerts_and_dashboard_name_metrics_and_routes_that_there_are(metrics, talk):
    routes = {action.name for action in actions(talk.service, None)}
    used = set()
    for title, expression in expressions():
        names = re.findall(r"\branktron_\w+", expression)
        assert names or title == "RanktronDown"
        assert set(names) <= metrics, title
        assert set(re.findall(r'route="([^"]*)"', expression)) <= routes, title
        assert expression.count("(") == expression.count(")"), title
        assert expression.replace("{name}", "").count("{") == expression.replace("{name}", "").count("}"), title
        used |= set(names)
    assert "ranktron_ready" in used


def test_every_alert_says_what_to_do():
    rules = [rule for group in yaml.safe_load(text("alerts.yaml"))["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["annotations"].keys() == {"summary", "do"}
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_dashboard_has_a_place_for_each_panel():
    panels = json.loads(text("dashboard.json"))["panels"]
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_unit_starts_the_service_and_reloads_it():
    unit = ConfigParser(strict=False, interpolation=None, delimiters=["="])
    unit.optionxform = str
    unit.read_string(text("ranktron.service"))
    service = unit["Service"]
    given = parsed_command(service["ExecStart"])
    assert (given["host"], given["port"]) == ("0.0.0.0", 8080)
    assert given["folder"] == f"/var/lib/{service['StateDirectory']}"
    assert "-HUP" in service["ExecReload"]
    assert service["User"] != "root"
    assert int(service["LimitNOFILE"]) > Config().max_connections


def test_settings_that_are_named_exist():
    options = {"RANKTRON_DIR", "RANKTRON_HOST", "RANKTRON_PORT", "RANKTRON_CONFIG", "RANKTRON_JOURNAL"}
    serve = cli.get_command(click.Context(cli), "serve")
    assert {parameter.envvar for parameter in serve.params if parameter.envvar} == options
    for path in FOLDER.iterdir():
        assert set(re.findall(r"RANKTRON_[A-Z_]+", path.read_text("utf-8"))) <= VARIABLES | options, path


def test_compose_mounts_what_it_has():
    compose = yaml.safe_load(text("compose.yaml"))
    assert compose["services"].keys() == {"service", "database", "prometheus"}
    for service in compose["services"].values():
        assert set(service.get("secrets", [])) <= compose["secrets"].keys()
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert (FOLDER / source).is_file() if source.startswith(".") else source in compose["volumes"]
    build = compose["services"]["service"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).samefile(FOLDER / "Containerfile")
    for value in compose["services"]["service"]["environment"].values():
        if "/run/secrets/" in value:
            assert value.rpartition("/")[2] in compose["secrets"]
    scraped = yaml.safe_load(text("prometheus.yaml"))["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["service:8080"]
    assert Path(scraped["authorization"]["credentials_file"]).name in compose["services"]["prometheus"]["secrets"]


def test_the_container_runs_as_a_user_of_its_own():
    lines = re.sub(r"\\\n\s*", "", text("Containerfile")).splitlines()
    steps = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    last = len(steps) - 1 - [word for word, _, _ in reversed(steps)].index("FROM")
    final = steps[last:]
    users = [rest for word, _, rest in final if word == "USER"]
    assert users == ["10001"]  # a number, for hosts that ask whether it is root
    assert "useradd --uid 10001 " in next(rest for word, _, rest in final if word == "RUN")
    assert json.loads(next(rest for word, _, rest in final if word == "ENTRYPOINT")) == ["ranktron", "serve"]
    for word, _, rest in steps:
        if word == "COPY" and not rest.startswith("--from"):
            assert all((FOLDER.parent / source).exists() for source in rest.split()[:-1])
        for command in re.findall(r"ranktron compile[^&]*", rest) if word == "RUN" else ():
            parsed_command(command)
    variables = dict(part.split("=") for word, _, rest in final if word == "ENV" for part in rest.split())
    assert variables["RANKTRON_PORT"] == next(rest for word, _, rest in final if word == "EXPOSE")
    assert variables["RANKTRON_DIR"] == next(rest for word, _, rest in final if word == "VOLUME")
