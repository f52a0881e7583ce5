"""`python -m ranktron` is the command line."""

import sys

if not __package__:  # started by its path (`ranktron.processes`): this package, wherever it is, and no other
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    folder = Path(__file__).parent
    spec = spec_from_file_location("ranktron", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["ranktron"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)

from ranktron.cli import main

if __name__ == "__main__":
    main()
