"""The files of a release: the same bytes from the same sources, complete, and installed alone; what they declare."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parent))
from lowest import ROOT, TOOLS, constraints, declared, lower_bound

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = ("ranktron", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", ".gitignore")


def build(source, out, *kinds):
    """The files that are built from a tree, by their names."""
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(out), str(source)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with sdist and wheel; the wheel is built from what is in the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes(dist, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, copy_function=shutil.copyfile)  # with times of now
        else:
            shutil.copyfile(ROOT / name, copy / name)
    for path in copy.rglob("*.py"):
        path.chmod(0o600)
    again = build(copy, tmp_path / "out", "--sdist", "--wheel")  # here the wheel is built from the tree
    assert again == {path.name: path.read_bytes() for path in dist.iterdir()}
    assert len(again) == 2


@pytest.mark.slow
def test_the_files_of_a_release_are_complete_and_pass_the_checks_of_the_index(dist):
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    command = [sys.executable, "-m", "twine", "check", "--strict", wheel, sdist]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    command = [sys.executable, "-m", "check_wheel_contents", wheel]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    tracked = subprocess.run(["git", "ls-files", "ranktron"], capture_output=True, text=True, cwd=ROOT, check=True)
    wanted = set(tracked.stdout.split())
    with zipfile.ZipFile(wheel) as file:
        assert {name for name in file.namelist() if ".dist-info/" not in name} >= wanted
        (metadata,) = [name for name in file.namelist() if name.endswith(".dist-info/METADATA")]
        shown = file.read(metadata).decode()
    places = re.findall(r"\]\(([^)]+)\)", shown)
    assert len(places) > 20
    assert all(place.startswith(f"{PROJECT['project']['urls']['Source']}/") for place in places), "links of the index"
    assert "pip install 'ranktron[tables]'" in shown
    with tarfile.open(sdist) as file:
        inside = {name.partition("/")[2] for name in file.getnames()}
    assert inside >= wanted | set(SOURCES) - {"ranktron"}
    assert not [name for name in inside if name.endswith((".pyc", ".nbi", ".nbc")) or name.startswith("tests")]


@pytest.mark.slow
def test_a_wheel_runs_alone(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    run = tmp_path / "env" / "bin"
    subprocess.run([run / "pip", "install", "-q", wheel], check=True, capture_output=True)
    commands = [
        ["simulate", "separable", "d.txt", "--queries", "20"],
        ["train", "d.txt", "--model", "m", "--epochs", "2"],
        ["evaluate", "m", "d.txt"],
        ["demo", "--queries", "50"],
    ]
    for command in commands:
        done = subprocess.run([run / "ranktron", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "ranktron[plot]" in done.stderr  # no picture without the extra, and the demo says so


def test_every_dependency_of_users_has_a_lower_bound_and_no_upper_one():
    for extra, requirement in declared():
        operators = {clause.operator for clause in requirement.specifier}
        assert operators == {">="}, f"{requirement} of the extra {extra!r}"


def test_a_dependency_has_the_same_lower_bound_wherever_it_is_named():
    bounds = {}
    for _, requirement in declared(tools=True):
        bounds.setdefault(requirement.name, set()).add(lower_bound(requirement))
    assert {name: found for name, found in bounds.items() if len(found - {None}) > 1} == {}
    assert len(constraints()) == len({line.partition("==")[0] for line in constraints()})


def test_what_is_installed_here_is_not_older_than_what_is_declared():
    from importlib.metadata import PackageNotFoundError, version

    for extra, requirement in declared():
        try:
            assert Version(version(requirement.name)) >= lower_bound(requirement), requirement
        except PackageNotFoundError:
            assert extra, f"{requirement} is not installed"  # extras may be absent


def test_pythons_are_declared_alike():
    """`requires-python`, classifiers and ruff's target name the same versions, and the workflow tests all of them."""
    named = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if " :: 3." in line]
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + named[0].replace(".", "")
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yaml").read_text(encoding="utf-8"))
    assert set(workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]) >= set(named)


def test_the_citation_is_of_this_version_and_place():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    assert (str(citation["version"]), citation["license"]) == (project["version"], project["license"])
    assert citation["repository-code"] == project["urls"]["Source"]
    assert all(url.startswith(project["urls"]["Source"]) for url in project["urls"].values())
    assert len(citation["references"]) == 5


def test_workflows_run_released_actions_with_few_rights():
    yaml = pytest.importorskip("yaml")
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yaml")):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {}, path.name
        for name, job in workflow["jobs"].items():
            writes = {right for right, level in job["permissions"].items() if level == "write"}
            assert not writes or name in ("deploy", "publish"), f"{path.name}: {name} may write"
            assert "timeout-minutes" in job
            for step in job["steps"]:
                assert re.fullmatch(r"[\w./-]+@v\d+(\.\d+\.\d+)?", step.get("uses", "a@v1")), f"{step}: no branch"


def test_extras_and_groups_for_developers_are_one():
    assert PROJECT["dependency-groups"] == {"dev": ["ranktron[dev]"]}
    assert set(TOOLS) < set(PROJECT["project"]["optional-dependencies"])


def test_continuous_integration_installs_versions_that_are_allowed():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = [Requirement(line) for line in text.splitlines()]
    for _, requirement in declared(tools=True):  # a package may be there twice, for several versions of Python
        found = [pin for pin in pinned if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
        assert found, f"run `make lock`: {requirement}"
        for pin in found:
            (version,) = pin.specifier
            assert requirement.specifier.contains(version.version), f"run `make lock`: {requirement}, {pin}"
