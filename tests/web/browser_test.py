"""The page in a real browser (chromium, driven by playwright-core): every view opened and used, no error in the console.

With ECHELON_SCREENSHOTS=DIR it also leaves pictures of the main views there."""
import json, os, pathlib, shutil, signal, subprocess, sys, tempfile, time

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
chromium, node = shutil.which("chromium"), shutil.which("node")
for what, there in (("chromium", chromium), ("node", node), ("web/node_modules/playwright-core", os.path.isdir(os.path.join(SOURCE, "web/node_modules/playwright-core")))):
    if not there:
        print(f"skipped: no {what} here; tools/setup browser installs it")
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
    train(root, "split", "--workers", "2", "--plan", "pipeline=2")
    table = os.path.join(folder, "houses.toml")
    subprocess.run([PROGRAM, "init", "share/examples/houses.csv", "--label", "price", "-o", table], cwd=SOURCE, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([PROGRAM, "train", table, "--set", "train.epochs=6", "--run", os.path.join(root, "houses"), "--json"], cwd=SOURCE, check=True, capture_output=True)
    story = os.path.join(folder, "story.txt")
    pathlib.Path(story).write_text("the cat sees the sea. a dog likes the boat.\n" * 100)
    for words in (["init", story], ["train", os.path.join(folder, "story.toml"), "--set", "train.steps=2", "--set", "model.width=32", "--run", os.path.join(root, "story")],
                  ["sample", os.path.join(root, "story"), "--prompt", "the cat", "--length", "30", "--keep"]):
        subprocess.run([PROGRAM, *words], cwd=folder, check=True, capture_output=True)
    shutil.copy(os.path.join(SOURCE, "docs/gan.png"), os.path.join(root, "story/samples.png"))
    train(root, "foreseen", "--workers", "2")
    summary = pathlib.Path(root, "foreseen/summary.json")  # as it is on a machine that has measured the network
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "predicted": {"seconds": 0.01, "bytes": 3 << 20, "why_off": "the links were slower"},
                                   "measured": {"seconds": 0.012, "bytes": 2 << 20}}))
    train(root, "<b>bold</b>", "--set", "optim.lr=0.05", "--set", "data.limit=200")
    lost = subprocess.Popen([PROGRAM, "train", RECIPE, "--workers", "2", "--world", "processes", "--set", "train.epochs=1000000", "--run", os.path.join(root, "lost"), "--json"],
                            cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    written = pathlib.Path(root, "lost/cluster.json")
    while lost.poll() is None and not written.exists(): time.sleep(0.1)
    os.kill(json.loads(written.read_text())["ranks"][1]["process"], signal.SIGKILL)
    lost.wait()
    live = subprocess.Popen([PROGRAM, "train", RECIPE, "--set", "data.limit=200", "--set", "data.limit_test=50", "--set", "train.epochs=1000000", "--run", os.path.join(root, "live"), "--json"],
                            cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(os.path.join(folder, "live.txt"), "w"))
    server = subprocess.Popen([PROGRAM, "board", "--root", root, "--port", "0", "--json"], cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=open(os.path.join(folder, "server.txt"), "w"), text=True)
    try:
        metrics = pathlib.Path(root, "live/metrics.jsonl")
        while live.poll() is None and not (metrics.exists() and metrics.stat().st_size): time.sleep(0.1)
        said = json.loads(server.stdout.readline())
        exported = os.path.join(folder, "run.html")
        subprocess.run([PROGRAM, "runs", "export", os.path.join(root, "seed-1"), "--html", exported], check=True, stdout=subprocess.DEVNULL)
        numbers = pathlib.Path(folder, "houses.html")
        subprocess.run([PROGRAM, "runs", "export", os.path.join(root, "houses"), "--html", numbers], check=True, stdout=subprocess.DEVNULL)
        assert all(f">{metric}<" in numbers.read_text() for metric in ("loss", "mae", "r2")), "a curve for each metric"
        env = {**os.environ, "ADDRESS": said["address"], "TOKEN": said["token"], "CHROMIUM": chromium, "EXPORTED": "file://" + exported,
               "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}  # chromium writes there, and a home may be missing
        code = subprocess.run([node, os.path.join(SOURCE, "tests/web/browser_test.mjs")], env=env, cwd=os.path.join(SOURCE, "web")).returncode
        labels = pathlib.Path(root, "seed-2/labels.json")
        if code == 0 and not (labels.exists() and json.loads(labels.read_text())["star"]):
            print("the star that was clicked is not in the run's folder")
            code = 1
        if code == 0 and not pathlib.Path(root, "live/journal.jsonl").exists():
            print("the live run was not asked for a checkpoint")
            code = 1
        for name, process in (("live run", live), ("server", server)):
            if process.poll() is not None:
                print(f"the {name} ended by itself with {process.returncode}")
                code = 1
        if code != 0:
            for name in ("live.txt", "server.txt"): print(f"--- {name}\n{pathlib.Path(folder, name).read_text()[-2000:]}")
    finally:
        for process in (live, server):
            process.terminate()
            process.wait()
        server.stdout.close()
sys.exit(code)
