#!/usr/bin/python3
"""tools/setup against a machine made of three small scripts: what dpkg has, and an apt that writes down what it is told."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2] / "tools/setup"
DPKG = """#!/bin/sh
shift 3
for p in "$@"; do grep -qxF "$p" "$MACHINE/installed" && echo "installed $p"; done
grep -q . "$MACHINE/installed"
"""
APT = """#!/bin/sh
echo "$@" >> "$MACHINE/apt.log"
case "$*" in
  *update*) [ ! -e "$MACHINE/offline" ] && touch "$MACHINE/lists" ;;
  *install*) [ -e "$MACHINE/lists" ] && [ ! -e "$MACHINE/offline" ] || exit 100
             if [ ! -e "$MACHINE/liar" ]; then for p in "$@"; do echo "$p" >> "$MACHINE/installed"; done; fi ;;
esac
"""
APT_CACHE = """#!/bin/sh
[ -e "$MACHINE/lists" ]
"""
ID = """#!/bin/sh
[ "$1" = -u ] && cat "$MACHINE/uid"
"""


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.machine = Path(folder.name)
        (self.machine / "bin").mkdir()
        for name, text in {"dpkg-query": DPKG, "apt-get": APT, "apt-cache": APT_CACHE, "id": ID}.items():
            self.script(name, text)
        for tool in ("sh", "sed", "grep", "xargs", "env", "cat", "touch", "echo"):
            (self.machine / "bin" / tool).symlink_to(next(p for p in (f"/usr/bin/{tool}", f"/bin/{tool}")
                                                          if os.path.exists(p)))
        (self.machine / "installed").write_text("\n".join(self.run_setup("--list", "build").stdout.split()) + "\n")
        (self.machine / "uid").write_text("0\n")
        (self.machine / "lists").touch()

    def script(self, name, text):
        path = self.machine / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def lacks(self, *names):
        path = self.machine / "installed"
        path.write_text("".join(f"{p}\n" for p in path.read_text().split() if p not in names))

    def run_setup(self, *args):
        return subprocess.run(["/bin/sh", SETUP, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={"PATH": str(self.machine / "bin"), "MACHINE": str(self.machine)})

    def apt_log(self):
        path = self.machine / "apt.log"
        return path.read_text().splitlines() if path.exists() else []

    def test_all_present_is_silent_and_asks_nobody(self):
        done = self.run_setup("build")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.apt_log(), [])

    def test_installs_only_what_is_missing_and_says_so(self):
        self.lacks("g++", "libhwy-dev")
        done = self.run_setup("build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("installing with apt: g++ libhwy-dev\n", done.stdout)
        self.assertEqual(len(self.apt_log()), 1)
        self.assertTrue(self.apt_log()[0].endswith("install -y --no-install-recommends g++ libhwy-dev"))
        self.assertEqual(self.run_setup("build").stdout, "")

    def test_fetches_the_lists_when_they_are_absent(self):
        self.lacks("cmake")
        (self.machine / "lists").unlink()
        self.assertEqual(self.run_setup("build").returncode, 0)
        self.assertEqual([("update" in line, "install" in line) for line in self.apt_log()],
                         [(True, False), (False, True)])

    def test_a_group_installs_nothing_of_another(self):
        self.lacks("cmake")
        self.assertEqual(self.run_setup("fuzz").returncode, 0)
        self.assertNotIn("cmake", "".join(self.apt_log()))
        self.assertIn("clang-16", "".join(self.apt_log()))

    def test_no_network_is_an_error_with_usual_causes(self):
        self.lacks("cmake")
        (self.machine / "offline").touch()
        done = self.run_setup("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt could not install: cmake", done.stderr)
        self.assertIn("no network", done.stderr)

    def test_success_without_the_packages_is_an_error(self):
        self.lacks("cmake")
        (self.machine / "liar").touch()
        done = self.run_setup("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not installed: cmake", done.stderr)

    def test_neither_root_nor_sudo_gives_the_command_to_run(self):
        self.lacks("cmake")
        (self.machine / "uid").write_text("1000\n")
        done = self.run_setup("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install -y --no-install-recommends cmake", done.stderr)
        self.assertEqual(self.apt_log(), [])

    def test_uses_sudo_when_not_root(self):
        self.lacks("cmake")
        (self.machine / "uid").write_text("1000\n")
        self.script("sudo", '#!/bin/sh\necho "sudo $*" >> "$MACHINE/apt.log"\nexec "$@"\n')
        self.assertEqual(self.run_setup("build").returncode, 0)
        self.assertRegex(self.apt_log()[0], r"^sudo env DEBIAN_FRONTEND=noninteractive apt-get ")

    def test_an_unknown_group_is_named(self):
        done = self.run_setup("everything")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'everything'", done.stderr)


if __name__ == "__main__":
    unittest.main()
