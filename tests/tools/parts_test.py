#!/usr/bin/python3
"""Adding a part touches its own file, one table and the header that declares it. That holds for every codec, rule, sync,
exchange and all-reduce; and for those that docs/adding-*.md add, what the page shows is all that src has of them."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# kind: type of a row, table, header
KINDS = {
    "codec": ("CodecPart", "src/codec/codecs.cpp", "src/codec/codecs.h"),
    "rule": ("RulePart", "src/parallel/rules.cpp", "src/parallel/rules/rules.h"),
    "sync": ("SyncPart", "src/parallel/syncs.cpp", "src/parallel/syncs/syncs.h"),
    "exchange": ("ExchangePart", "src/parallel/exchanges.cpp", "src/parallel/exchanges/exchanges.h"),
    "collective": ("Algorithm", "src/collective/algorithms.cpp", "src/collective/algorithms.cpp"),
}
PAGES = {
    "docs/adding-a-codec.md": [("codec", "terngrad")],
    "docs/adding-a-system.md": [("rule", "sign_majority"), ("codec", "dorefa"), ("sync", "essp"), ("exchange", "random_peer")],
    "docs/adding-a-collective.md": [("collective", "binomial_all_reduce")],
}
ROOMS = ("codec", "collective", "parallel")
SOURCES = {str(path.relative_to(ROOT)): path.read_text()
           for room in ROOMS for path in (ROOT / "src" / room).rglob("*.*") if path.suffix in (".h", ".cpp")}


def owners(kind, name):
    """The files that define the function which returns the part's row."""
    return [file for file, text in SOURCES.items() if f"\n{KINDS[kind][0]} {name}() {{" in text]


class Parts(unittest.TestCase):
    def test_each_has_a_file_that_makes_it_and_a_line_in_the_table(self):
        for kind, (row, table, header) in KINDS.items():
            names = re.findall(rf"^{row} (\w+)\(\);", SOURCES[header], re.M)
            self.assertGreater(len(names), 7, kind)
            rows = re.sub(rf"^{row} \w+\(\);", "", SOURCES[table], flags=re.M)  # without declarations
            for name in names:
                with self.subTest(kind=kind, part=name):
                    self.assertEqual(len(owners(kind, name)), 1, owners(kind, name))
                    self.assertEqual(len(re.findall(rf"(?<!\w){name}\(\)", rows)), 1)

    def test_a_page_shows_all_that_there_is_of_its_part(self):
        for page, added in PAGES.items():
            text = (ROOT / page).read_text()
            blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)
            for kind, name in added:
                with self.subTest(page=page, part=name):
                    row, table, header = KINDS[kind]
                    own = owners(kind, name)[0]
                    self.assertIn(SOURCES[own], blocks, f"{own} reads differently now")
                    self.assertIn(f"{row} {name}();\n", "".join(blocks))
                    for file in (own, table, header):
                        self.assertIn(file, text)
                    speak_of_it = {file for file, source in SOURCES.items() if re.search(rf"(?<!\w){name}\(\)", source)}
                    self.assertEqual(speak_of_it, {own, table, header})


if __name__ == "__main__":
    unittest.main()
