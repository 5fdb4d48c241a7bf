"""What an installation says of itself: --version, doctor; and what `make install` puts where."""
import json, os, subprocess, sys, tempfile, unittest
from pathlib import Path

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BUILD = os.path.dirname(PROGRAM)


def run(*words, **kwargs):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kwargs)


def cpu_flags():
    """As the kernel names them."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


class Version(unittest.TestCase):
    def test_names_build_and_cpu_features(self):
        said = run("--version")
        self.assertEqual(said.returncode, 0)
        first, build, cpu = said.stdout.splitlines()
        self.assertRegex(first, r"^echelon \d+\.\d+\.\d+$")
        self.assertRegex(build, r"^build: (g\+\+|clang) \d+")
        names = {"sse4.2": "sse4_2", "avx512vnni": "avx512_vnni"}
        flags = cpu_flags()
        for feature in ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw"):
            self.assertEqual(feature in cpu.split(), names.get(feature, feature) in flags, feature)


class Doctor(unittest.TestCase):
    def findings(self, **kwargs):
        said = run("doctor", "--json", **kwargs)
        self.assertEqual(said.returncode, 0, said.stderr)
        found = json.loads(said.stdout)
        self.assertTrue(found["healthy"])
        return {f["what"]: f for f in found["findings"]}

    def test_says_what_there_is(self):
        with tempfile.TemporaryDirectory() as folder:
            found = self.findings(cwd=folder)
            self.assertEqual(os.listdir(folder), [])
        for what in ("build", "CPU", "kernels", "cores", "memory", "huge pages", "shared memory", "loopback",
                     "MPI plugin", "mpirun", "systems", "digits", "this folder"):
            self.assertIn(what, found)
        self.assertTrue(found["cores"]["found"].startswith(f"{len(os.sched_getaffinity(0))} of "))
        kernels = "AVX2 with FMA" if {"avx2", "fma"} <= cpu_flags() else "SSE4"
        if kernels != "SSE4" and "avx512bw" in cpu_flags():
            kernels += ", AVX-512 for products"
        self.assertEqual(found["kernels"]["found"], kernels)
        for f in found.values():
            self.assertTrue(f["state"] == "ok" or f["cure"] or "kernel has none" in f["found"], f)

    def test_what_is_missing_has_a_cure(self):
        with tempfile.TemporaryDirectory() as folder:
            found = self.findings(cwd=folder, env={**os.environ, "PATH": folder,
                                                   "ECHELON_MPI_PLUGIN": folder + "/none.so"})
        for what, cure in (("mpirun", "apt install openmpi-bin"), ("MPI plugin", "apt install libopenmpi-dev")):
            self.assertEqual(found[what]["state"], "note")
            self.assertIn(cure, found[what]["cure"])
        one = self.findings(preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        self.assertTrue(one["cores"]["found"].startswith("1 of "))

    def test_for_people(self):
        said = run("doctor")
        self.assertIn("Everything that training needs is there.", said.stdout)


class Install(unittest.TestCase):
    """The program's part of `make install`, in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = Path(cls.folder.name) / "prefix"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "program"], check=True,
                       stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_manual_and_completions(self):
        verbs = json.loads(run("completion", "--json").stdout)
        pages = {p.name for p in (self.prefix / "share/man/man1").iterdir()}
        for verb in verbs:
            if " " not in verb:
                self.assertIn(f"echelon-{verb}.1" if verb else "echelon.1", pages)
        for file in ("bash-completion/completions/echelon", "zsh/vendor-completions/_echelon",
                     "fish/vendor_completions.d/echelon.fish"):
            self.assertIn("train", (self.prefix / "share" / file).read_text())

    def test_program_and_python_package_find_their_data_from_any_folder(self):
        said = subprocess.run([self.prefix / "bin/echelon", "doctor", "--json"], capture_output=True, text=True,
                              cwd=self.folder.name, check=True)
        found = {f["what"]: f for f in json.loads(said.stdout)["findings"]}
        self.assertEqual(found["digits"]["state"], "ok")
        self.assertEqual(found["systems"]["state"], "ok")
        package = self.prefix / "lib/python3/dist-packages"
        if not package.exists():
            self.skipTest("there is no pybind11 here")
        script = "import echelon; print('easgd' in echelon.systems(), echelon.check({'model': 'lenet5', " \
                 "'data': {'kind': 'digits'}, 'train': {'epochs': 1}})['model']['weights'])"
        said = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, cwd=self.folder.name,
                              env={**os.environ, "PYTHONPATH": str(package)})
        self.assertEqual(said.stdout.split()[0], "True", said.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
