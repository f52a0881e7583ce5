"""The site, built by `make docs` from the Markdown pages beside this file and from the docstrings.

The pages are plain Markdown that reads well on a code host, too. What only the site can do is put in as they are read:
navigation, the documentation of public names, and the files of the folder above.
"""

import inspect
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import examples
import made
from docutils import nodes
from sphinx import addnodes

import ranktron

project = "Ranktron"
author = "the authors of Ranktron"
project_copyright = author
release = version = ranktron.__version__
html_title = f"Ranktron {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["*.py"]
myst_heading_anchors = 4
default_role = "literal"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88

# A class is public under its short name and documented where it is defined: either is a right answer to a type.
suppress_warnings = ["ref.python"]

html_favicon = "../ranktron/service/pages/icon.svg"  # browsers ask for one, and a missing one is an error of the page
html_theme = "furo"
html_static_path = ["style.css", "versions.js", "menu.js"]
html_js_files = ["versions.js", "menu.js"]
templates_path = ["templates"]
html_css_files = ["style.css"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "versions.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}

# Pages of the site that stand in the folder above, where people look for them first.
ABOVE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
# Arrays are written by their names in `types.py`.
ARRAYS = {"float32": "Matrix", "float64": "Floats", "int64": "Integers"}


def read_page(app, page, source):
    """Puts into a page what only the site has."""
    # doctest wants a blank line at the end of a block, readers do not
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)
    if page in ABOVE:
        source[0] = (made.ROOT / ABOVE[page]).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, file in ABOVE.items():
        up = "../" * page.count("/")
        source[0] = re.sub(rf"\]\((\.\./)*{file}", f"]({up}{name}.md", source[0])
    if page == "index":
        source[0] += "\n\n" + "\n\n".join(_tree(group, pages) for group, pages in made.navigation().items())
    if page == "gallery/index":
        source[0] += "\n\n" + _tree("", list(examples.SCRIPTS))
    if page == "api/index":
        source[0] += "\n\n" + _tree("", list(made.modules()))
    if page.startswith("api/"):
        source[0] = re.sub(r"(?m)^\| `(ranktron\.\S+)` \|", _link, source[0])
        source[0] = re.sub(r"<!-- reference: (\S+) -->", _documentation, source[0])


def _tree(caption, pages):
    option = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n:hidden:\n{option}\n" + "\n".join(pages) + "\n```"


def _link(match):
    return f"| {{py:obj}}`{match[1].rpartition('.')[2]} <{made.told_at(match[1])}>` |"


def _documentation(match):
    name = match[1]
    thing = made.found(name)
    if inspect.isclass(thing):
        lines = [f".. autoclass:: {name}", "   :members:"]
    elif callable(thing):
        # a compiled function documents itself through the Python function that it was made from
        lines = [f".. autofunction:: {name}"]
    else:
        lines = [f".. autodata:: {name}", "   :no-value:"]
    return "```{eval-rst}\n" + "\n".join(lines) + "\n```"


def as_restructured(app, what, name, thing, options, lines):
    """Makes a docstring, which is written as plain text, safe to be read as reStructuredText.

    An indented block after a paragraph is a formula and keeps its form; `|w|`, `x_` and `*` mean themselves.
    """
    shown = []
    section, formula = False, False
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"\s*-{3,}", lines[i + 1]):
            section = True
        indented = line.startswith("    ")
        after_text = i >= 2 and not lines[i - 1].strip() and not lines[i - 2].startswith("    ")
        if indented and not section and (formula or after_text):
            if not formula:
                shown += ["::", ""]
            formula = True
            shown.append(line)
            continue
        if line.strip():
            formula = False
        shown.append(line if line.lstrip().startswith((">>>", "...")) else _escaped(line))
    lines[:] = shown


def _escaped(line):
    """A line whose marks mean themselves, except between backticks."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([|*])", r"\\\1", parts[i])
        parts[i] = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", parts[i])
    return "".join(parts)


def short_types(app, what, name, thing, options, signature, returns):
    """Arrays by their short names."""
    return tuple(text and _short(text) for text in (signature, returns))


def _short(text):
    array = r"ndarray\[[^|]*?dtype\[(\w+)\]\]"
    text = re.sub(r"~?\b(numpy|typing)\.", "", text).replace("<factory>", "...")
    text = re.sub(r"<function (\w+)(?: at 0x\w+)?>", r"\1", text)  # a default that is a function
    return re.sub(array, lambda match: ARRAYS.get(match[1], "ndarray"), text)


def short_properties(app, tree):
    """Arrays by their short names where a property says its type."""
    for node in tree.findall(addnodes.desc_annotation):
        if "dtype" in node.astext():
            node.children = [nodes.Text(_short(node.astext()))]


def skip_foreign(app, what, name, thing, skip, options):
    """Leaves out what Python and scikit-learn add to a class, and fields of named tuples, which say their number."""
    foreign = not (getattr(thing, "__module__", None) or "ranktron").startswith("ranktron")
    numbered = (getattr(thing, "__doc__", None) or "").startswith("Alias for field number")
    return True if foreign or numbered else None


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", as_restructured, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", short_types)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("doctree-read", short_properties)
    return {"parallel_read_safe": True}
