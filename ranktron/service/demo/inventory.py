"""Lists the documented names of the standard library, as a script in a process of its own.

It runs isolated (`python -I -S inventory.py`) and imports every module of the standard library; the side effects of
these imports (patches, threads, warnings, output) end with the process. It prints the number of modules on the first
line, and then one line of JSON for each module: a list of documents.
"""

import inspect
import json
import os
import pkgutil
import re
import sys
from importlib import import_module
from typing import Any

# Modules that are not imported, with the reason. All others together import in a third of a second.
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
MAX_TEXT = 4000  # characters of a docstring; the rest is mostly examples and history
ALIASES = ("os.path",)  # modules without a file of their own name


def modules() -> dict[str, Any]:
    """The public modules that can be imported on this platform, top-level ones first."""
    modules: dict[str, Any] = {}
    queue = [name for name in sorted(sys.stdlib_module_names) if not name.startswith("_") and name not in SKIPPED]
    queue += ALIASES
    while queue:
        name = queue.pop(0)
        try:
            module = import_module(name)
        except BaseException:  # of another platform, or not built; some raise SystemExit
            continue
        modules[name] = module
        children = (child.name for child in pkgutil.iter_modules(getattr(module, "__path__", ())))
        queue += [f"{name}.{child}" for child in children if child[0] != "_" and child not in ("test", "tests")]
    return modules


def public(name: str, module: Any) -> dict[str, Any]:
    """The public functions and classes of a module: those in `__all__`, or those it defines."""
    exported = list(vars(module)) if name == "builtins" else getattr(module, "__all__", None)
    names = vars(module) if exported is None else exported
    members = {}
    for member in list(names):
        value = getattr(module, member, None)
        if member.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if exported is not None or getattr(value, "__module__", None) in (name, f"_{name}", None):
            members[member] = value
    return members


def classify(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function"


def docstring_text(value: Any) -> str:
    text = getattr(value, "__doc__", None)
    return inspect.cleandoc(text)[:MAX_TEXT] if isinstance(text, str) else ""


def format_signature(value: Any, name: str, text: str) -> str:
    """The signature, as `(a, b=1)`, from `inspect` or else from the start of the docstring."""
    try:
        signature = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
        return re.sub(r"^\((self|cls|type)\b(, /)?(, )?", "(", signature)[:200]
    except Exception:  # inspect evaluates the defaults of C functions, which may raise anything
        match = re.match(rf"(?:[\w.]+\.)?{re.escape(name)}(\([^\n]*?\))", text)
        return match[1][:200] if match else ""


def make_document(module: str, path: str, value: Any, kind: str) -> dict[str, str]:
    text = docstring_text(value)
    signature = "" if kind in ("module", "property") else format_signature(value, path.rpartition(".")[2], text)
    name = path if module == "builtins" else f"{module}.{path}" if path else module
    return {"id": name, "module": module, "kind": kind, "signature": signature, "text": text}


def methods(module: str, path: str, cls: type) -> list[dict[str, str]]:
    """The public methods and properties that a class defines itself."""
    documents = []
    for name, value in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        kind = "property" if isinstance(value, property) or inspect.isdatadescriptor(value) else "method"
        if kind == "method":
            value = getattr(value, "__func__", value)  # unwraps class methods and static methods
            if not inspect.isroutine(value):
                continue
        documents.append(make_document(module, f"{path}.{name}", value, kind))
    return documents


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards what modules print on import
    imported = modules()
    print(len(imported), file=out, flush=True)
    seen: set[int] = set()  # ids of values already listed: aliases are left out
    for name, module in imported.items():
        documents = [make_document(name, "", module, "module")]
        for path, value in public(name, module).items():
            if id(value) in seen:
                continue
            seen.add(id(value))
            documents.append(make_document(name, path, value, classify(value)))
            if inspect.isclass(value):
                documents += methods(name, path, value)
        print(json.dumps([each for each in documents if each["text"]]), file=out, flush=True)
    out.flush()
    os._exit(0)  # skips the exit hooks of the imported modules, and does not wait for their threads


if __name__ == "__main__":
    main()
