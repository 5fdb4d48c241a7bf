#!/usr/bin/python3
"""The program that is shipped is hardened: position-independent, its tables read-only after start, the stack guarded,
the C library's checks and those of libstdc++ compiled in.

    hardening_test.py PROGRAM
"""
import subprocess
import sys
import unittest

PROGRAM = None


def readelf(*what):
    return subprocess.run(["readelf", "-W", *what, PROGRAM], check=True, capture_output=True, text=True).stdout


class Hardening(unittest.TestCase):
    def test_position_independent(self):
        self.assertRegex(readelf("-h"), r"Type:\s+DYN")

    def test_relocations_read_only_and_bound_at_start(self):
        self.assertIn("GNU_RELRO", readelf("-l"))
        self.assertRegex(readelf("-d"), r"BIND_NOW|FLAGS_1.*NOW")

    def test_stack_not_executable(self):
        stack = next(line for line in readelf("-l").splitlines() if "GNU_STACK" in line)
        self.assertNotIn("E", stack.split()[-2])

    def test_stack_protector(self):
        self.assertIn("__stack_chk_fail", readelf("--dyn-syms"))

    def test_fortified_c_library(self):
        self.assertRegex(readelf("--dyn-syms"), r"__(memcpy|memset|memmove|read|pread|printf|fprintf|snprintf|vsnprintf)\w*_chk")

    def test_libstdcxx_assertions(self):
        self.assertIn("__glibcxx_assert_fail", readelf("--dyn-syms"))

    def test_no_path_of_the_build_machine_to_find_libraries(self):
        self.assertNotRegex(readelf("-d"), r"R(UN)?PATH")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
