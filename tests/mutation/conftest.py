"""The modules of this folder import each other by their plain names, as a script's do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
