"""Experiments on slow links and with slow workers, as a user asks for them: the weights stay the same, the time does not,
and what makes no sense is refused with the way it is written."""
import json, os, subprocess, sys, tempfile, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
QUICK = ["--set", "data.limit=240", "--set", "data.limit_test=60", "--set", "train.epochs=1", "--set", "train.shards=4",
         "--set", "train.batch=60", "--cores", "1"]


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=SOURCE, stdin=subprocess.DEVNULL)


def result(*words):
    done = run(*words)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout.strip().splitlines()[-1])


class Experiments(unittest.TestCase):
    def refuse(self, part, *words):
        with tempfile.TemporaryDirectory() as folder:
            done = run("train", "recipes/demo.toml", *QUICK, "--run", f"{folder}/run", *words)
            self.assertEqual(done.returncode, 2, f"{words}: {done.stderr}")
            self.assertIn(part, done.stderr, words)
            self.assertFalse(os.path.exists(f"{folder}/run"), words)

    def seconds(self, *words):
        return result("bench", "collective", "--bytes", "64K", "--algorithm", "ring", "--repeats", "3", "--json", *words)

    def test_a_link_has_a_speed_and_perhaps_a_latency(self):
        for wrong in ("100", "100mb", "fast", "-1mbit", "0mbit", "nanmbit", "infgbit", "1e305gbit", "1e-9kbit",
                      "1mbit,", "1mbit,5", "1mbit,1ms,1ms"):
            self.refuse("100mbit,1ms", "--workers", "2", "--link=" + wrong)

    def test_a_link_is_read_in_large_and_small_letters(self):
        def virtual(link):
            return self.seconds("--ranks", "2", "--world", "sim", "--link", link)["time_us"]
        for usual, others in (("100mbit,1ms", ("100Mbit,1ms", "100MBIT,1MS", "100 Mbit/s, 1 ms", "0.1Gbit/s,1ms", "1e5kbit,0.001s")),
                              ("1gbit", ("1Gbit", "1000 mbit/s"))):
            self.assertEqual({virtual(other) for other in others}, {virtual(usual)}, usual)
        self.assertNotEqual(virtual("100mbit"), virtual("100kbit"))

    def test_bits_and_bytes_are_not_guessed(self):
        for unclear in ("100mb", "100Mb", "100MB", "12.5MB/s", "1Gb/s", "100Mbps", "100 MBps,1ms"):
            self.refuse("12.5 MB/s are 100mbit", "--workers", "2", "--link=" + unclear)

    def test_a_straggler_is_a_rank_and_a_factor(self):
        for wrong, part in (("rank=2", "the factor is missing"), ("factor=2", "the rank is missing"),
                            ("rank=x,factor=2", "whole number or any"), ("rank=0.5,factor=2", "whole number or any"),
                            ("rank=0,factor=0.5", "from 1 to"), ("rank=0,factor=2,chance=0", "at most 1"),
                            ("rank=0,factor=2,speed=1", "there is no 'speed'"), ("rank=0,rank=1,factor=2", "said twice"),
                            ("rank=2,factor=4", "no rank 2 among 2 workers")):
            self.refuse(part, "--workers", "2", "--straggler", wrong)
            self.refuse("--straggler " + wrong, "--workers", "2", "--straggler", wrong)

    def test_a_cluster_file_says_itself_how_fast_its_links_are(self):
        self.refuse("leave out --link 1gbit", "--world", "sim", "--cluster", "recipes/clusters/two-racks.toml", "--link",
                    "1gbit")

    def test_slow_links_and_workers_give_the_same_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            def train(name, *words):
                return result("train", "recipes/demo.toml", *QUICK, "--run", f"{folder}/{name}", "--json", *words)
            plain = train("plain")
            for i, words in enumerate((["--link", "200mbit,1ms"], ["--world", "threads", "--link", "1gbit"],
                                       ["--world", "tcp", "--link", "1gbit"], ["--world", "sim", "--link", "10mbit,5ms"],
                                       ["--straggler", "rank=1,factor=3", "--straggler", "rank=any,factor=2,chance=0.5"])):
                slow = train(f"slow{i}", "--workers", "2", *words)
                self.assertEqual(slow["weights_sha256"], plain["weights_sha256"], words)

    def test_an_all_reduce_takes_as_long_as_the_link_needs(self):
        # Each of two ranks sends 64 KiB in two halves; 20 Mbit/s are 2.5 million bytes a second.
        needed = 65536 / 2.5e6
        for words in (["--world", "threads"], ["--world", "processes"], ["--world", "sim"]):
            got = self.seconds("--ranks", "2", *words, "--link", "20mbit,2ms")
            self.assertGreaterEqual(got["time_us"] / 1e6, 0.99 * (needed + 2 * 0.002), words)
            if words == ["--world", "sim"]:
                self.assertLess(got["time_us"] / 1e6, 1.01 * (needed + 2 * 0.002), words)


if __name__ == "__main__":
    unittest.main(argv=["experiments", *sys.argv[3:]])
