"""The page in a real browser (chromium, driven by playwright-core): every view opened and used, no error in the console.

With ECHELON_SCREENSHOTS=DIR it also leaves pictures of the main views there."""
import json, os, pathlib, shutil, subprocess, sys, tempfile

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
chromium, node = shutil.which("chromium"), shutil.which("node")
if not chromium or not node or not os.path.isdir(os.path.join(SOURCE, "web/node_modules/playwright-core")):
    print("no chromium, node or playwright-core here: tools/setup browser installs them")
    sys.exit(77)


def train(root, name, *words):
    command = [PROGRAM, "train", RECIPE, "--set", "data.limit=600", "--set", "data.limit_test=100", "--set", "train.epochs=2", *words, "--run", os.path.join(root, name), "--json"]
    done = subprocess.run(command, cwd=SOURCE, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


with tempfile.TemporaryDirectory() as folder:
    root = os.path.join(folder, "runs")
    os.mkdir(root)
    train(root, "seed-1", "--trace")
    train(root, "seed-2", "--set", "train.seed=2")
    train(root, "easgd", "--system", "easgd", "--workers", "2", "--trace")
    train(root, "<b>bold</b>", "--set", "optim.lr=0.05", "--set", "data.limit=200")
    live = subprocess.Popen([PROGRAM, "train", RECIPE, "--set", "data.limit=200", "--set", "data.limit_test=50", "--set", "train.epochs=1000000", "--run", os.path.join(root, "live"), "--json"],
                            cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = subprocess.Popen([PROGRAM, "board", "--root", root, "--port", "0", "--json"], cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        said = json.loads(server.stdout.readline())
        exported = os.path.join(folder, "run.html")
        subprocess.run([PROGRAM, "runs", "export", os.path.join(root, "seed-1"), "--html", exported], check=True, stdout=subprocess.DEVNULL)
        env = {**os.environ, "ADDRESS": said["address"], "TOKEN": said["token"], "CHROMIUM": chromium, "EXPORTED": "file://" + exported}
        code = subprocess.run([node, os.path.join(SOURCE, "tests/web/browser_test.mjs")], env=env, cwd=os.path.join(SOURCE, "web")).returncode
        labels = pathlib.Path(root, "seed-2/labels.json")
        if code == 0 and not (labels.exists() and json.loads(labels.read_text())["star"]):
            print("the star that was clicked is not in the run's folder")
            code = 1
        if code == 0 and not pathlib.Path(root, "live/journal.jsonl").exists():
            print("the live run was not asked for a checkpoint")
            code = 1
    finally:
        for process in (live, server):
            process.terminate()
            process.wait()
        server.stdout.close()
sys.exit(code)
