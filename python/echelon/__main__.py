"""`python3 -m echelon train recipe.toml`: the program that came with the package."""
import os
import sys
from pathlib import Path

program = str(Path(__file__).resolve().parent / "bin" / "echelon")
if not os.path.exists(program):
    program = str(Path(sys.modules["echelon._core"].__file__).resolve().parent / "bin" / "echelon")
os.execv(program, ["echelon", *sys.argv[1:]])
