"""The examples run, as their own text says, and say what they claim."""
from support import *


class Examples(InFolder):
    def run_example(self, name, *words):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "examples/python", name), *words],
                              env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_first_model(self):
        self.assertIn("test digits are read right", self.run_example("first_model.py", "10"))

    def test_own_data(self):
        said = self.run_example("own_data.py", "10")
        self.assertIn("arrays and the data set give the same weights: True", said)
        self.assertIn("test_sure", said)

    def test_compare_systems(self):
        said = self.run_example("compare_systems.py", "20")
        for system in ("bsp", "easgd", "sparknet", "gosgd"):
            self.assertIn(system, said)

    def test_fine_tune(self):
        self.assertIn("after 0 to 4", self.run_example("fine_tune.py", "1"))

    def test_two_processes(self):
        said = self.run_example("two_processes.py", "20")
        self.assertIn("heard of 20 steps, all here: True", said)
        self.assertIn("the same weights as one process: True", said)


if __name__ == "__main__":
    unittest.main()
