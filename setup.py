"""Lets CMake compile the module and the program, and puts both into the package, with the recipes and digits they look
for beside themselves: echelon/_core.*.so, echelon/bin/echelon, echelon/share/echelon. ECHELON_BUILD names the build
folder (default: build), ECHELON_JOBS the jobs."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.egg_info import egg_info

ROOT = Path(__file__).resolve().parent


class Build(build_ext):
    """Instead of a compiler that setuptools would call."""

    def build_extension(self, ext):
        build = Path(os.environ.get("ECHELON_BUILD", ROOT / "build")).resolve()
        jobs = os.environ.get("ECHELON_JOBS", str(os.cpu_count() or 1))
        if not (build / "build.ninja").exists():
            self.call("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release",
                     "-D", f"Python_EXECUTABLE={sys.executable}")
        self.call("cmake", "--build", build, "-j", jobs, "--target", "echelon", "echelon_python")
        package = Path(self.get_ext_fullpath(ext.name)).resolve().parent
        package.mkdir(parents=True, exist_ok=True)
        (package / "bin").mkdir(exist_ok=True)
        module = build / "python/echelon" / Path(self.get_ext_filename(ext.name)).name
        if not module.exists():
            raise SystemExit(f"{build} was configured for another Python than {sys.executable}: name another folder "
                             "with ECHELON_BUILD")
        shutil.copy2(module, package / module.name)
        for file in ("echelon", "libechelon_mpi.so"):
            if (build / file).exists():
                shutil.copy2(build / file, package / "bin" / file)
        for folder in ("share/digits", "recipes"):
            shutil.copytree(ROOT / folder, package / "share/echelon" / Path(folder).name, dirs_exist_ok=True)

    @staticmethod
    def call(*words):
        subprocess.run([str(word) for word in words], cwd=ROOT, check=True)


class EggInfo(egg_info):
    """Beside what else is built, not among the sources."""

    def initialize_options(self):
        super().initialize_options()
        self.egg_base = str(ROOT / "build")
        os.makedirs(self.egg_base, exist_ok=True)


setup(ext_modules=[Extension("echelon._core", sources=[])], cmdclass={"build_ext": Build, "egg_info": EggInfo})
