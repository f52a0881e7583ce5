"""The gallery: runs its scripts, and makes a page of each from the script, what it printed, and its picture.

`python -m pytest tests/test_gallery.py --write-docs` writes the pages and the pictures; the same tests run every
script, and fail while what it prints or draws differs from its page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import runpy
from pathlib import Path
from unittest import mock

GALLERY = Path(__file__).parent / "gallery"

# Every script, in the order of the gallery, with the guide that tells more.
SCRIPTS = {
    "learn-while-serving": "serving",
    "from-a-click-log": "clicks",
    "weights-that-learn": "agents",
    "is-it-better": "is-it-better",
    "which-learner": "choosing",
    "explain-a-ranking": "explain",
    "export-to-a-search-engine": "export",
    "nonlinear-curves": "nonlinear",
    "top-k-feedback": "papers/topk",
    "margin-certificate": "theory",
    "many-machines": "beyond-one-machine",
    "reproduce-a-figure": "reproduce",
    "track-with-mlflow": "tools",
    "rank-in-pyterrier": "tools",
}


def docstring(name: str) -> tuple[str, str]:
    """The title of a script, and what it says about itself."""
    told = ast.get_docstring(ast.parse((GALLERY / f"{name}.py").read_text(encoding="utf-8"))) or ""
    title, _, about = told.partition("\n")
    return title, about.strip()


def code(name: str) -> str:
    """A script without its docstring."""
    return (GALLERY / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2].strip()


def run(name: str, folder: Path) -> tuple[str, str]:
    """Runs a script in a folder: what it printed, and the picture that it drew there."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    printed = io.StringIO()
    dated = mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "0"})  # the same picture has the same bytes
    with dated, contextlib.chdir(folder), matplotlib.rc_context(), contextlib.redirect_stdout(printed):
        runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")
        pyplot.close("all")
    return printed.getvalue(), (folder / f"{name}.svg").read_text(encoding="utf-8")


def words(picture: str) -> str:
    """The text of a picture, a line for each piece."""
    found = re.findall(r"<(?:text|tspan)[^>]*>([^<]*)<", picture)
    return "\n".join(piece.strip() for piece in found if piece.strip())


def page(name: str, printed: str) -> str:
    """The page of a script."""
    title, about = docstring(name)
    more = SCRIPTS[name]
    parts = [
        f"# {title}",
        about,
        f"![{title}]({name}.svg)",
        f"What it prints:\n\n```text\n{printed.rstrip()}\n```",
        f"The script, `docs/gallery/{name}.py`:",
        f"```py\n{code(name)}\n```",
        f"More about it: [{guide_title(more)}](../{more}.md). [All of the gallery](index.md).",
    ]
    return "\n\n".join(parts) + "\n"


def guide_title(guide: str) -> str:
    """The first heading of a guide."""
    return (GALLERY.parent / f"{guide}.md").read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]


def index() -> str:
    """The page of the gallery: its pictures, each leading to its page."""
    head = (
        "# Gallery\n\nShort scripts that make their own data and their own picture, and run as they are: "
        "`python docs/gallery/learn-while-serving.py`. They need `pip install '.[all]'`, and the last ones besides the "
        "extra `dask`, the extra `mlflow`, and `pip install pyterrier`. The tests run every one of them, and the title "
        "of each picture is what that run has shown."
    )
    titles = {name: docstring(name)[0] for name in SCRIPTS}
    entries = [f"- [![{title}]({name}.svg)]({name}.md)\n  [{title}]({name}.md)" for name, title in titles.items()]
    return f"{head}\n\n" + "\n".join(entries) + "\n"
