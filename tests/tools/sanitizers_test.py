#!/usr/bin/python3
"""ThreadSanitizer can start with our suppressions, and go on when a library is loaded later: whatever called_from_lib
names is one library of the program, with one executable segment.

    sanitizers_test.py PROGRAM SUPPRESSIONS
"""
import re
import subprocess
import sys
import unittest

PROGRAM = SUPPRESSIONS = None


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Suppressions(unittest.TestCase):
    def test_each_names_one_library_of_one_executable_segment(self):
        libraries = re.findall(r"=> (/\S+)", output("ldd", PROGRAM))
        with open(SUPPRESSIONS) as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("called_from_lib:")]
        self.assertTrue(names)
        for name in names:
            matching = [path for path in libraries if name in path]
            self.assertLessEqual(len(matching), 1, f"{name} matches {matching}")
            for path in matching:
                loaded = [line for line in output("readelf", "-lW", path).splitlines() if line.split()[:1] == ["LOAD"]]
                executable = [line for line in loaded if "E" in "".join(line.split()[6:-1])]
                self.assertTrue(loaded)
                self.assertEqual(len(executable), 1, f"{name}: use race:{name} for {path}")


if __name__ == "__main__":
    SUPPRESSIONS, PROGRAM = sys.argv.pop(), sys.argv.pop()
    unittest.main()
