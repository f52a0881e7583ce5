"""A list of what the standard library offers, written by an interpreter of its own.

It is run as a script in a fresh, isolated interpreter (`python -I -S inventory.py`) and imports nothing but the
standard library: whatever importing a module does to a process (patches, threads, warnings, text on the terminal), it
does to that one, which ends at once. The first line on standard output is the number of modules; then comes one line
of JSON for each, a list of its documents.
"""

import inspect
import json
import os
import pkgutil
import re
import sys
from importlib import import_module
from typing import Any

# Left out, and why. Importing takes a third of a second for all the others together.
SKIPPED = {
    "antigravity": "opens a browser",
    "this": "prints a poem",
    "idlelib": "an application; needs a display",
    "turtledemo": "an application; needs a display",
    "turtle": "needs a display",
    "tkinter": "needs a display",
    "test": "not for users, thousands of names",
    "lib2to3": "gone from newer versions, warns",
    "distutils": "gone from newer versions, warns",
    "encodings": "a module for each encoding, all alike",
    "ensurepip": "an installer",
    "pydoc_data": "text only",
    "posix": "the same as os",
    "nt": "the same as os",
    "posixpath": "the same as os.path",
    "ntpath": "the same as os.path",
    "genericpath": "the same as os.path",
    "sre_compile": "the inside of re, warns",
    "sre_constants": "the inside of re, warns",
    "sre_parse": "the inside of re, warns",
    "xxsubtype": "an example for authors of modules",
}
LONGEST = 4000  # characters of a docstring; what comes after them is examples and history
ALIASES = ("os.path",)  # modules that no search for files finds under their name


def modules() -> dict[str, Any]:
    """The public modules that can be imported here, shallow ones first."""
    found: dict[str, Any] = {}
    waiting = [name for name in sorted(sys.stdlib_module_names) if not name.startswith("_") and name not in SKIPPED]
    waiting += ALIASES
    while waiting:
        name = waiting.pop(0)
        try:
            module = import_module(name)
        except BaseException:  # of another platform, or not built; some leave by SystemExit
            continue
        found[name] = module
        inside = (part.name for part in pkgutil.iter_modules(getattr(module, "__path__", ())))
        waiting += [f"{name}.{part}" for part in inside if not part.startswith("_") and part not in ("test", "tests")]
    return found


def public(name: str, module: Any) -> dict[str, Any]:
    """The functions and classes that a module offers: those it lists, or those it makes itself."""
    listed = list(vars(module)) if name == "builtins" else getattr(module, "__all__", None)
    names = vars(module) if listed is None else listed
    offered = {}
    for each in list(names):
        thing = getattr(module, each, None)
        if each.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        home = getattr(thing, "__module__", None)
        if listed is not None or home in (name, f"_{name}", None):
            offered[each] = thing
    return offered


def classify(thing: Any) -> str:
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function"


def docstring_text(thing: Any) -> str:
    text = getattr(thing, "__doc__", None)
    return inspect.cleandoc(text)[:LONGEST] if isinstance(text, str) else ""


def show_signature(thing: Any, name: str, text: str) -> str:
    """`(a, b=1)`, or what the docstring says first where the interpreter does not know."""
    try:
        known = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing)))
        return re.sub(r"^\((self|cls|type)\b(, /)?(, )?", "(", known)[:200]
    except Exception:  # it evaluates defaults, and those of some C modules fail in all ways
        said = re.match(rf"(?:[\w.]+\.)?{re.escape(name)}(\([^\n]*?\))", text)
        return said[1][:200] if said else ""


def describe_thing(module: str, path: str, thing: Any, kind: str) -> dict[str, str]:
    text = docstring_text(thing)
    signature = "" if kind in ("module", "property") else show_signature(thing, path.rpartition(".")[2], text)
    name = path if module == "builtins" else f"{module}.{path}" if path else module
    return {"id": name, "module": module, "kind": kind, "signature": signature, "text": text}


def methods(module: str, path: str, thing: type) -> list[dict[str, str]]:
    """The public methods and properties of a class that are its own."""
    found = []
    for name, value in list(vars(thing).items()):
        if name.startswith("_"):
            continue
        kind = "property" if isinstance(value, property) or inspect.isdatadescriptor(value) else "method"
        if kind == "method":
            value = getattr(value, "__func__", value)  # of class methods and static ones
            if not inspect.isroutine(value):
                continue
        found.append(describe_thing(module, f"{path}.{name}", value, kind))
    return found


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what modules print on import goes nowhere
    found = modules()
    print(len(found), file=out, flush=True)
    taken: set[int] = set()
    for name, module in found.items():
        documents = [describe_thing(name, "", module, "module")]
        for path, thing in public(name, module).items():
            if id(thing) in taken:
                continue  # the same thing under a second name
            taken.add(id(thing))
            documents.append(describe_thing(name, path, thing, classify(thing)))
            if inspect.isclass(thing):
                documents += methods(name, path, thing)
        print(json.dumps([each for each in documents if each["text"]]), file=out, flush=True)
    out.flush()
    os._exit(0)  # threads and exit hooks of what was imported do not matter


if __name__ == "__main__":
    main()
