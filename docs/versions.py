"""Puts a built site beside those of other versions: `python docs/versions.py out/docs out/site`.

Each version has a folder of its own, and `index.html` leads to the newest. The list of all of them is written into
every folder, old ones too, so that the menu in their sidebars shows what has come since.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

LEADS_ON = (
    '<!doctype html><meta charset="utf-8"><title>Ranktron</title><meta http-equiv="refresh" content="0; url=%s">\n'
)


def publish(built: Path, site: Path, version: str) -> list[str]:
    """Copies a built site to the folder of its version; gives all versions, newest first."""
    shutil.copytree(
        built, site / version, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".buildinfo*", ".doctrees")
    )
    versions = sorted(
        (path.parent.parent.name for path in site.glob("*/_static/versions.js")), key=_order, reverse=True
    )
    for name in versions:
        (site / name / "_static" / "versions.js").write_text(f"const VERSIONS = {json.dumps(versions)};\n")
    (site / "versions.json").write_text(json.dumps(versions) + "\n")
    (site / "index.html").write_text(LEADS_ON % f"{versions[0]}/index.html")
    return versions


def _order(version: str) -> tuple[list[int], bool]:
    """A development version stands before the version that it becomes."""
    number, _, dev = version.partition(".dev")
    return [int(part) for part in re.findall(r"\d+", number)], not dev


if __name__ == "__main__":
    import ranktron

    print("\n".join(publish(Path(sys.argv[1]), Path(sys.argv[2]), ranktron.__version__)))
