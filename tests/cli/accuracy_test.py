"""What the recipes promise, on the real data: accuracy or loss after the epochs or steps that they say.
    accuracy_test.py PROGRAM SOURCE DATASET RECIPE KEY LEAST_OR_MOST LIMIT [FLAGS OF TRAIN...]
The data are fetched (or found in $ECHELON_DATA); without a network the test is skipped: exit code 77."""
import json, os, subprocess, sys, tempfile

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DATASET, RECIPE, KEY, SENSE, LIMIT = sys.argv[3:7] + [float(sys.argv[7])]
FLAGS = sys.argv[8:]
SKIPPED = 77


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        environment.setdefault("ECHELON_DATA", os.path.join(folder, "data"))
        got = subprocess.run([PROGRAM, "data", "get", DATASET], capture_output=True, text=True, env=environment)
        if got.returncode == 1:  # a download that is there but wrong would be 2
            print(f"skipped: {DATASET} is not here and cannot be fetched: {got.stderr.strip()}")
            return SKIPPED
        assert got.returncode == 0, got.stderr
        run = subprocess.run([PROGRAM, "train", os.path.join(SOURCE, RECIPE), "--run", os.path.join(folder, "run"),
                              "--json", *FLAGS], stdout=subprocess.PIPE, text=True, env=environment, check=True)
        result = json.loads(run.stdout.strip().splitlines()[-1])
    print(f"{' '.join([RECIPE, *FLAGS])}: {KEY} {result[KEY]:.4f} after {result['steps']} steps ({result['epochs']:.1f} epochs), "
          f"{result['seconds']:.0f} s; wanted at {SENSE} {LIMIT}")
    return 0 if (result[KEY] >= LIMIT if SENSE == "least" else result[KEY] <= LIMIT) else 1


sys.exit(main())
