#!/usr/bin/python3
"""tools/check_words lets the project pass, finds a planted word in every disguise, and knows where a word is right."""
import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check_words", str(ROOT / "tools/check_words"))
check_words = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_words", loader))
loader.exec_module(check_words)


class CheckWords(unittest.TestCase):
    def planted(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_words.violations(root))

    def refused(self, name, text, *words):
        found = self.planted({name: text})
        self.assertTrue(found, f"not refused: {text!r}")
        for word in words:
            self.assertIn(word, found[0])

    def allowed(self, name, text):
        self.assertEqual(self.planted({name: text}), [], text)

    def test_the_project_itself_passes(self):
        self.assertEqual(list(check_words.violations(ROOT)), [])

    def test_a_word_is_found_in_every_form(self):
        for text in ("one crew", "crew_size", "CrewSize crews_;", "the Crew of a rank", "// a crew's cores"):
            self.refused("src/parallel/team/a.h", text, "src/parallel/team/a.h:1:", "crew", "team")
        self.refused("docs/a.md", "\n\nIt sends a letter.", "docs/a.md:3:", "message")
        self.refused("src/world/give.cpp", "void give_up();", "give up", "abort")
        self.refused("src/world/give.cpp", 'fail("rank {} gave up");', "give up", "abort")

    def test_every_place_is_looked_at(self):
        for name in ("src/a.h", "tests/a.cpp", "docs/a.md", "recipes/a.toml", "tools/a", "bench/a.py",
                     "examples/b/a.cpp", "README.md", "CONTRIBUTING.md"):
            self.refused(name, "a parcel", "message")

    def test_a_file_name_counts(self):
        self.refused("src/world/bell.h", "", "its name", "futex")

    def test_longer_words_are_other_words(self):
        for text in ("mailbox", "aggregate", "newsletter", "outdoors", "proportion", "planet"):
            self.allowed("src/world/a.h", text)

    def test_a_word_may_stand_where_it_is_the_field_s(self):
        self.allowed("src/kernels/simd/simd-inl.h", "the lanes of a vector")
        self.refused("src/collective/group.h", "the lanes of a group", "duplicate of a group")
        self.allowed("src/graph/ops/recurrent.h", "four gates")
        self.refused("src/parallel/server/client.h", "int gate;", "gates")
        self.allowed("src/recipe/recipe.h", "std::int64_t patience = 0;")
        self.refused("src/collective/a.h", "class Patience", "wait policy")
        self.allowed("src/track/event_file.h", "what TensorBoard reads")
        self.allowed("src/track/plot_text.cpp", "letters for curves")

    def test_names_of_code_are_told_from_english(self):
        self.refused("src/world/a.h", "Turns turns_;", "mutex")
        self.allowed("src/world/a.h", "// the channels take turns")
        self.refused("src/world/a.h", "void set_doing(std::string);", "status")
        self.allowed("src/world/a.h", "// what a rank is doing")
        self.refused("src/parallel/a.h", "struct StepMoment {", "retired type name")


if __name__ == "__main__":
    unittest.main()
