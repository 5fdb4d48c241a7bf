"""A run that is killed (SIGKILL) again and again, at random moments, and resumed ends with the weights of one that was
not. At least fifty kills in all, over several networks and update rules."""
import json, os, random, signal, subprocess, sys, tempfile, time

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WANTED_KILLS = 50
CASES = [
    ["--set", "model.name=mlp", "--set", "model.hidden=[32]", "--set", "optim.name=adam", "--set", "optim.lr=0.002"],
    [],  # LeNet-5 with momentum
    ["--set", "optim.name=lamb", "--set", "optim.lr=0.01", "--set", "train.shards=4"],
]
COMMON = ["--set", "data.limit=1500", "--set", "data.limit_test=100", "--set", "train.epochs=12",
          "--set", "train.checkpoint_every_steps=7", "--json"]


def command(case, run, *more):
    return [PROGRAM, "train", os.path.join(SOURCE, "recipes/demo.toml"), *case, *COMMON, "--run", run, *more]


def result(output):
    return json.loads(output.strip().splitlines()[-1])


def recorded(run):
    return [json.loads(line)["step"] for line in open(f"{run}/metrics.jsonl") if '"train_loss"' in line]


def main():
    dice = random.Random(7)
    kills = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(100 * len(CASES)):  # a fast machine needs more runs for as many kills
            if kills >= WANTED_KILLS and number >= len(CASES):
                break
            case = CASES[number % len(CASES)]
            clean = subprocess.run(command(case, f"{folder}/clean{number}"), capture_output=True, text=True, cwd=SOURCE)
            assert clean.returncode == 0, clean.stderr
            started = time.monotonic()
            wanted = result(clean.stdout)["weights_sha256"]
            run, attempts = f"{folder}/killed{number}", 0
            while True:
                resume = ["--resume"] if os.path.exists(f"{run}/recipe.toml") else []
                child = subprocess.Popen(command(case, run, *resume), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True, cwd=SOURCE)
                # Later attempts live longer, so that every run ends at last even on a slow machine.
                try:
                    out, err = child.communicate(timeout=dice.uniform(0.05, 0.35 + 0.05 * attempts))
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGKILL)
                    child.communicate()
                    kills += 1
                    attempts += 1
                    continue
                assert child.returncode == 0, err
                break
            found = result(out)
            assert found["weights_sha256"] == wanted, f"case {number}: {found} after {attempts} kills, wanted {wanted}"
            assert found["stopped_by"] == "end"
            steps = recorded(run)
            assert steps == recorded(f"{folder}/clean{number}"), f"case {number}: metrics.jsonl lacks or repeats steps"
            left = [n for n in os.listdir(f"{run}/checkpoints") if not n.startswith("step-") or n.endswith(".new")]
            assert not left, f"remains of a save: {left}"
            print(f"case {number}: {attempts} kills, same weights, {time.monotonic() - started:.1f} s", flush=True)
    assert kills >= WANTED_KILLS, f"only {kills} kills happened"
    print(f"{kills} kills")


main()
