"""The shells that complete our command lines, and the manual pages: each read by the program it is written for."""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(*words, ok=True):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=SOURCE, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


class Shells(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = self.folder.name
        os.makedirs(os.path.join(self.at, "runs", "houses-1"))

    def tearDown(self):
        self.folder.cleanup()

    def shell(self, *words):
        return subprocess.run(words, capture_output=True, text=True, cwd=self.at, check=True,
                              env={**os.environ, "HOME": self.at}).stdout

    def check(self, completed):
        self.assertEqual(completed("echelon", "tr"), ["train"])
        self.assertEqual(completed("echelon", "data", "get", "fa"), ["fashion-mnist"])
        self.assertEqual(completed("echelon", "systems", "show", "easg"), ["easgd"])
        self.assertEqual(completed("echelon", "train", "x.toml", "--resu"), ["--resume"])
        self.assertIn("houses-1", completed("echelon", "predict", "h"))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_verbs_flags_and_names(self):
        script = os.path.join(self.at, "echelon.fish")
        pathlib.Path(script).write_text(run("completion", "fish").stdout)

        def completed(*words):
            out = self.shell("fish", "--no-config", "-c", f"source {script}; complete -C '{' '.join(words)}'")
            return [line.split("\t")[0] for line in out.splitlines()]
        self.check(completed)
        about = self.shell("fish", "--no-config", "-c", f"source {script}; complete -C 'echelon predict x --to'")
        self.assertIn("How many classes", about)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_completes_verbs_flags_and_names(self):
        script = os.path.join(self.at, "_echelon")
        pathlib.Path(script).write_text(run("completion", "zsh").stdout)

        def completed(*words):  # _describe offers the words to the line editor, which there is none of here
            quoted = " ".join(f"'{w}'" for w in words)
            out = self.shell("zsh", "-f", "-c", f"compdef() {{}}; _files() {{}}; _describe() {{ print -rl -- ${{(P)4}} }}\n"
                             f"source {script}; words=({quoted}); CURRENT={len(words)}; _echelon")
            found = [re.split(r"(?<!\\):", line)[0] for line in out.splitlines()]
            return [word for word in found if word.startswith(words[-1])]
        self.check(completed)

    def test_a_manual_page_has_every_flag_of_the_help(self):
        verbs = json.loads(run("completion", "--json").stdout)
        for verb in [path for path in verbs if path and " " not in path]:
            page = run("man", verb).stdout.replace("\\-", "-")
            for path, words in verbs.items():
                if path == verb or path.startswith(verb + " "):
                    for flag in words.split():
                        if flag.startswith("--"):
                            self.assertIn(f"\\fB{flag}\\fR", page, path)
            self.assertIn(".SH NAME", page)
            self.assertIn("EXIT STATUS", page)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_pages_are_written_and_read_by_groff_without_a_warning(self):
        where = os.path.join(self.at, "man1")
        files = json.loads(run("man", "--to", where, "--json").stdout)["files"]
        self.assertEqual(sorted(os.listdir(where)), sorted(os.path.basename(f) for f in files))
        for file in files:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-Kutf8", "-ww", file], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", file)
        text = re.sub(r"\x1b\[[0-9;]*m", "", subprocess.run(["groff", "-man", "-Tascii", "-Kutf8", os.path.join(where, "echelon-predict.1")],
                      capture_output=True, text=True, check=True).stdout)
        self.assertIn("echelon predict runs/houses-1 new.csv -o prices.jsonl", text)

    def test_an_unknown_verb_or_shell_is_refused(self):
        done = run("man", "trian", ok=False)
        self.assertEqual((done.returncode, "did you mean 'train'" in done.stderr.lower() or "train" in done.stderr), (2, True))
        self.assertEqual(run("completion", "csh", ok=False).returncode, 2)
        self.assertEqual(run("man", "train", "--to", self.at, ok=False).returncode, 2)
        self.assertEqual(run("man", "--to", "/proc/none", ok=False).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
