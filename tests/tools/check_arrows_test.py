#!/usr/bin/python3
"""tools/check_arrows lets the project pass, and catches each kind of violation when one is planted."""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = """
echelon_room(base      USES fmt::fmt)
echelon_room(tensor    LOOKS_AT base)
# echelon_room(ghost LOOKS_AT base)
echelon_room(world     LOOKS_AT base USES Threads::Threads)
echelon_room(data      LOOKS_AT base tensor world
                       USES ZLIB::ZLIB HOT array formats/.*)
"""


sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check_arrows", str(ROOT / "tools/check_arrows"))
check_arrows = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_arrows", loader))
loader.exec_module(check_arrows)


class CheckArrows(unittest.TestCase):
    def planted(self, files, table=TABLE):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            files = {"src/CMakeLists.txt": table, "src/base/error.h": "", "src/tensor/shape.h": "",
                     "src/world/disk.h": "", **files}
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_arrows.violations(root))

    def refused(self, name, text, *words):
        found = self.planted({name: text})
        self.assertTrue(found, f"not refused: {text!r}")
        for word in words:
            self.assertIn(word, found[0])

    def allowed(self, name, text):
        self.assertEqual(self.planted({name: text}), [], text)

    def test_the_project_itself_passes(self):
        self.assertEqual(list(check_arrows.violations(ROOT)), [])

    def test_the_exit_code_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src/base").mkdir(parents=True)
            (Path(folder) / "src/CMakeLists.txt").write_text("echelon_room(base)")
            run = lambda: subprocess.run([ROOT / "tools/check_arrows", folder], capture_output=True, text=True)
            self.assertEqual(run().returncode, 0)
            (Path(folder) / "src/base/a.cpp").write_text("std::mutex m;")
            self.assertEqual(run().returncode, 1)
            self.assertIn("src/base/a.cpp:1", run().stdout)

    def test_an_include_along_the_arrows_passes(self):
        self.allowed("src/data/a.h", '#include "tensor/shape.h"\n#include "data/b.h"\n#include <vector>\n')

    def test_an_include_against_the_arrows_is_refused_with_its_line(self):
        self.refused("src/base/a.h", '\n#include "tensor/shape.h"\n', "src/base/a.h:2", "base may not look at tensor")
        self.refused("src/tensor/deep/a.cpp", '#  include "world/os/disk.h"', "tensor may not look at world")

    def test_a_relative_include_cannot_go_round_the_check(self):
        self.refused("src/base/a.h", '#include "../tensor/shape.h"', "full path")
        self.refused("src/tensor/a.cpp", '#include "shape.h"', "full path")

    def test_a_commented_include_is_no_include(self):
        self.allowed("src/base/a.h", '// #include "tensor/shape.h"\n/*\n#include "world/os/disk.h"\nstd::thread t; */\n')

    def test_what_belongs_to_the_world_is_refused_elsewhere_and_allowed_there(self):
        for text in ("#include <thread>", "#include <mutex>", "std::mutex m;", "std::jthread t(f);", "std::promise<int> p;", "std::async(f);", "pthread_create(&t);",
                     "std::lock_guard l(m);", "#pragma omp parallel for", "omp_set_num_threads(1);", "#include <sys/socket.h>",
                     "int s = ::socket(1, 2, 3);", "#include <fstream>", "std::ifstream in(p);", "fopen(p, q);",
                     "int f = ::open(p, 0);", "std::filesystem::exists(p);", "namespace fs = std::filesystem;", "std::chrono::steady_clock::now();",
                     "auto t = time(nullptr);", "clock_gettime(a, b);", "std::random_device r;", "int i = rand();",
                     "std::this_thread::sleep_for(t);", "sleep(n);", "::sleep(1);", "usleep(5);", "nanosleep(&t, nullptr);",
                     "if (fork() == 0) f();", "#include <linux/futex.h>", "syscall(202, &w);",
                     "getrandom(a, b, 0);", 'f("/dev/urandom");', "RAND_bytes(p, 4);"):
            with self.subTest(text):
                self.refused("src/data/a.cpp", text, "src/data/a.cpp:1", "only world may")
                self.refused("src/base/a.cpp", text, "src/base/a.cpp:1", "only world may")
                self.allowed("src/world/a.cpp", text)

    def test_words_that_only_look_alike_pass(self):
        self.allowed("src/data/a.cpp", "disk.open(path); world.sleep(1); void sleep(double); file->time(0); operand(1); std::chrono::seconds s; my_rand(); "
                                       "x.barrier(); std::future<void> f; std::filesystem::path p; disk->rename(a, b); Disk::open(p); // std::thread\n")

    def test_a_folder_without_a_line_in_the_table_is_refused(self):
        self.refused("src/ghost/a.h", "", "src/ghost", "add one")

    def test_a_table_with_a_circle_or_an_unknown_room_is_refused(self):
        found = self.planted({}, "echelon_room(base LOOKS_AT tensor)\nechelon_room(tensor LOOKS_AT base)\n"
                                 "echelon_room(world)")
        self.assertIn("circle: base -> tensor -> base", found[0])
        found = self.planted({}, TABLE + "echelon_room(nn LOOKS_AT graph)")
        self.assertIn("nn looks at graph, which is no room", found[0])


if __name__ == "__main__":
    unittest.main()
