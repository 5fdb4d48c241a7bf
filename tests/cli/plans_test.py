"""Training a model that is split over workers, as a user sees it: the same weights under every plan and in every world,
also after a kill and under another plan; plans that cannot work are refused and leave nothing behind."""
import json, os, re, shutil, signal, subprocess, sys, tempfile, time

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHORT = ["--set", "data.limit=600", "--set", "data.limit_test=100", "--set", "train.epochs=2", "--set", "train.shards=4",
         "--set", "train.batch=60", "--set", "train.checkpoint_every_steps=5", "--set", "optim.clip_norm=1.0",
         "--set", "schedule.name=constant"]


def start(run, *flags, recipe="recipes/demo.toml"):
    return subprocess.Popen([PROGRAM, "train", recipe, "--run", run, "--json", *flags], cwd=SOURCE, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def train(run, *flags, **recipe):
    child = start(run, *flags, **recipe)
    out, err = child.communicate()
    assert child.returncode == 0, (flags, err[-2000:])
    return json.loads(out.splitlines()[-1])


def show(*flags):
    done = subprocess.run([PROGRAM, "plan", "show", "recipes/demo.toml", *flags], cwd=SOURCE, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def published():
    return json.loads(subprocess.check_output([PROGRAM, "plan", "list", "--json"], cwd=SOURCE, text=True))


def published_plans_train_the_weights_of_one_worker(folder):
    """Each with its own example: a recipe, workers and what the model needs."""
    few = ["--set", "data.limit=96", "--set", "data.limit_test=20", "--set", "train.epochs=1", "--set", "train.batch=32",
           "--set", "train.shards=4", "--set", "optim.clip_norm=1.0", "--set", "schedule.name=constant"]
    wanted = {}
    for plan in published():
        assert plan["title"] and plan["paper"] and plan["about"] and plan["program"], plan["name"]
        if plan["own_result"]:
            continue
        recipe, *flags = plan["example"].split()
        at = flags.index("--workers")
        workers, sets = flags[at:at + 2], flags[:at] + flags[at + 2:]
        key = (recipe, *sets)
        if key not in wanted:
            wanted[key] = train(f"{folder}/alone{len(wanted)}", *few, *sets, "--cores", "1", recipe=recipe)["weights_sha256"]
        got = train(f"{folder}/plan-{plan['name']}", *few, *sets, *workers, "--plan", plan["name"], recipe=recipe)
        assert got["weights_sha256"] == wanted[key], plan["name"]


def same_weights_under_every_plan(folder):
    wanted = train(f"{folder}/whole", *SHORT, "--cores", "1")
    plans = [("4", "data=2,pipeline=2,schedule=1f1b", []), ("4", "pipeline=4,schedule=gpipe", ["--world", "threads"]),
             ("2", "pipeline=2,schedule=zero_bubble", ["--world", "tcp"]),
             ("2", "pipeline=2,schedule=bidirectional", ["--world", "sim"]),
             ("2", "pipeline=2,cuts=conv2", []), ("2", "data=1,pipeline=2", ["--cores", "2"])]
    for i, (workers, plan, flags) in enumerate(plans):
        got = train(f"{folder}/plan{i}", *SHORT, "--workers", workers, "--plan", plan, *flags)
        for key in ("weights_sha256", "test_loss", "test_accuracy", "train_loss"):
            assert got[key] == wanted[key], (plan, flags, key, got[key], wanted[key])
    assert len(got["ranks"]) == 4, "each core of a worker is a rank of a split model"


def same_weights_with_slices_on_several_ranks(folder):
    sliced = [*SHORT, "--set", "model.slices=2"]
    wanted = train(f"{folder}/sliced", *sliced, "--cores", "1")
    for i, (workers, plan) in enumerate([("2", "tensor=2"), ("4", "data=2,tensor=2"),
                                         ("4", "tensor=2,pipeline=2,schedule=zero_bubble")]):
        got = train(f"{folder}/tensor{i}", *sliced, "--workers", workers, "--plan", plan)
        assert got["weights_sha256"] == wanted["weights_sha256"], plan


def layers_are_placed_by_hand(folder):
    shown = json.loads(subprocess.check_output([PROGRAM, "plan", "show", "recipes/models/gnmt-digits.toml", "--workers", "4",
                                                "--plan", "gnmt", "--json"], cwd=SOURCE, text=True))
    assert [s["layers"][-1] if i == 0 else s["layers"][0] for i, s in enumerate(shown["stages"])] == \
        ["lstm1", "lstm2", "lstm3", "lstm4"], shown["stages"]


def pipedream_has_a_result_of_its_own(folder):
    flags = [*SHORT, "--set", "train.epochs=4", "--workers", "4", "--plan"]
    exact = train(f"{folder}/exact", *SHORT, "--set", "train.epochs=4", "--cores", "1")
    first = train(f"{folder}/pipedream", *flags, "pipeline=4,schedule=pipedream")
    assert first["weights_sha256"] != exact["weights_sha256"]
    assert first["test_accuracy"] > exact["test_accuracy"] - 0.1, (first, exact)
    again = train(f"{folder}/again", *flags, "pipeline=4,schedule=pipedream", "--world", "sim")
    assert again["weights_sha256"] == first["weights_sha256"]
    vertical = train(f"{folder}/vertical", *flags, "pipeline=4,schedule=pipedream,sync=vertical")
    assert vertical["weights_sha256"] not in (first["weights_sha256"], exact["weights_sha256"])
    text = show("--workers", "4", "--plan", "pipeline=4,schedule=pipedream")
    assert "not that of exact training" in text and "by stage: 3 2 1 0" in text, text


# A network of equal layers on workers whose messages cost nothing, in virtual time: data parallelism is never idle there.
def gpipe_is_as_fast_as_its_formula_in_the_simulation(folder):
    recipe, cluster = f"{folder}/layers.toml", f"{folder}/cluster.toml"
    with open(recipe, "w") as f:
        f.write('[model]\nname = "mlp"\nhidden = [128, 128, 128, 128, 128, 128, 128]\n[data]\nkind = "synthetic"\n'
                'make = "blobs"\nshape = [128]\nclasses = 128\nsamples = 512\n[optim]\nname = "sgd"\nlr = 0.01\n'
                '[train]\nsteps = 4\nbatch = 64\nshards = 8\n')
    with open(cluster, "w") as f:
        f.write("[[machines]]\ncount = 4\ngflops = 1\nbandwidth_gbit = 10000\nlatency_us = 0\n")
    sim = ["--world", "sim", "--cluster", cluster]
    busy = train(f"{folder}/busy", *sim, recipe=recipe)["samples_per_s"]
    pipe = train(f"{folder}/pipe", *sim, "--plan", "pipeline=4,schedule=gpipe", recipe=recipe)["samples_per_s"]
    assert abs(pipe / busy / (8 / (8 + 4 - 1)) - 1) < 0.1, (pipe, busy)
    # With several steps under way too, on links whose costs are known: the run is predicted before it starts.
    for plan in ("pipeline=4,schedule=pipedream", "pipeline=2,schedule=pipedream,sync=vertical"):
        assert train(f"{folder}/ahead-{plan}", *sim, "--plan", plan, recipe=recipe)["steps"] == 4, plan


def bytes_are_known_before(folder):
    for i, plan in enumerate(["data=2,pipeline=2,schedule=1f1b", "zero=3,evaluate=first", "pipeline=2,zero=2,recompute=sqrt"]):
        shown = json.loads(show(*SHORT[:10], "--workers", "4", "--plan", plan, "--json"))
        got = train(f"{folder}/bytes{i}", *SHORT, "--workers", "4", "--plan", plan)
        for rank in range(4):
            assert got["system"][f"bytes_rank_{rank}"] == shown["ranks"][rank]["bytes"], (plan, rank, got["system"], shown["ranks"])
    shown = json.loads(show(*SHORT[:10], "--workers", "1", "--json"))["ranks"][0]  # not split: no copy for evaluations
    got = train(f"{folder}/bytes-whole", *SHORT, "--cores", "1")
    assert shown["model"] == 0 and abs(got["system"]["bytes_rank_0"] / shown["bytes"] - 1) < 0.001, (got["system"], shown)


def a_plan_that_needs_more_memory_is_refused_with_those_that_fit(folder):
    whole = json.loads(show(*SHORT[:10], "--workers", "4", "--plan", "data=4", "--json"))["ranks"][0]
    limit = str(whole["bytes"] * 9 // 10)
    run = f"{folder}/too-much"
    child = start(run, *SHORT, "--workers", "4", "--memory", limit)
    _, err = child.communicate()
    assert child.returncode == 2 and "--plan data=" in err and not os.path.exists(run), err
    plan = err.split("these fit: --plan ")[1].split()[0]
    wanted = train(f"{folder}/memory", *SHORT, "--cores", "1")
    got = train(f"{folder}/memory-plan", *SHORT, "--workers", "4", "--plan", plan, "--memory", limit)
    assert got["weights_sha256"] == wanted["weights_sha256"], plan
    assert all(got["system"][f"bytes_rank_{rank}"] <= int(limit) for rank in range(4))


def a_killed_run_goes_on_under_another_plan(folder):
    run = f"{folder}/killed"
    child = start(run, *SHORT, "--set", "train.epochs=100000", "--workers", "4", "--plan", "data=2,pipeline=2,zero=3")
    path = f"{run}/checkpoints"
    for _ in range(60000):
        if os.path.isdir(path) and any(name[5:].isdigit() for name in os.listdir(path) if name.startswith("step-")):
            break
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    # It may have got further than the short run does; a run of its own is what both are compared with.
    step = max(int(name[5:]) for name in os.listdir(path) if name.startswith("step-") and name[5:].isdigit())
    flags = [*SHORT, "--set", f"train.epochs={step // 10 + 2}"]
    whole = train(f"{folder}/long", *flags, "--cores", "1")
    got = train(run, *flags, "--workers", "2", "--plan", "pipeline=2,schedule=gpipe", "--resume")
    assert got["weights_sha256"] == whole["weights_sha256"], step


# Part by part: each goes on from the checkpoint of the one before, under another plan and in another world.
def checkpoints_load_under_any_other_plan(folder):
    sliced = [*SHORT, "--set", "model.slices=2", "--set", "data.limit=120"]
    parts = [(["--workers", "4"], "zero=3", []), (["--workers", "2", "--world", "tcp"], "tensor=2", []),
             (["--workers", "2", "--world", "sim"], "pipeline=2,schedule=dualpipe", [])]
    if shutil.which("mpirun"):
        tmp = f"{folder}/mpi"  # two mpiruns that begin at once cannot both make the usual folder
        os.mkdir(tmp)
        parts.insert(1, ([], "pipeline=2", ["mpirun", "--mca", "orte_tmpdir_base", tmp, "--allow-run-as-root", "--oversubscribe",
                                            "-np", "2"]))
    wanted = train(f"{folder}/in-one-go", *sliced, "--set", f"train.epochs={len(parts)}", "--cores", "1")
    for epoch, (workers, plan, starter) in enumerate(parts):
        command = [*starter, PROGRAM, "train", "recipes/demo.toml", "--run", f"{folder}/parts", "--json", *sliced, "--set",
                   f"train.epochs={epoch + 1}", "--plan", plan, *workers, *(["--resume"] if epoch > 0 else [])]
        done = subprocess.run(command, cwd=SOURCE, text=True, capture_output=True)
        assert done.returncode == 0, (plan, done.stderr[-2000:])
    got = json.loads(done.stdout.splitlines()[-1])
    assert got["steps"] == wanted["steps"] and got["weights_sha256"] == wanted["weights_sha256"]


def a_wait_names_the_stage_and_the_micro_batch(folder):
    run = f"{folder}/late"
    child = start(run, *SHORT, "--set", "train.epochs=100000", "--workers", "2", "--plan", "pipeline=2")

    def wait_until(condition, what):
        for _ in range(60000):
            if condition():
                return
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.01)
        raise AssertionError(f"never happened: {what}")

    metrics, log = f"{run}/metrics.jsonl", f"{run}/logs/rank_0.log"
    steps = lambda: sum(1 for _ in open(metrics))
    wait_until(lambda: os.path.exists(metrics) and steps() > 5, "a few steps")
    late = int(open(f"/proc/{child.pid}/task/{child.pid}/children").read().split()[1])

    def notice():
        """What rank 0 says it waits for while rank 1 stands still."""
        notices = lambda: [line for line in open(log) if "waiting " in line]
        known = len(notices())
        os.kill(late, signal.SIGSTOP)
        wait_until(lambda: len(notices()) > known, "a notice")
        so_far = steps()
        os.kill(late, signal.SIGCONT)
        wait_until(lambda: steps() > so_far, "further steps, so that another wait begins")
        return notices()[known]

    # Rank 1 may stand still where rank 0 waits for a sum of norms or the like, and not for a stage.
    assert any(re.search(r"waiting \d+\.\d s for stage 1, micro-batch \d", notice()) for _ in range(100))
    child.terminate()
    child.communicate()
    assert child.returncode == 0, child.returncode


def a_trace_has_a_row_for_each_rank_and_micro_batch(folder):
    train(f"{folder}/trace", *SHORT, "--set", "train.epochs=1", "--set", "data.limit=120", "--workers", "4", "--plan",
          "data=2,pipeline=2", "--trace")
    events = json.load(open(f"{folder}/trace/trace.json"))["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    for rank in range(4):
        own = [f"micro-batch {m}" for m in ((0, 1) if rank < 2 else (2, 3))]
        assert sorted(n for (pid, _), n in rows.items() if pid == rank and n.startswith("micro")) == own, (rank, rows)
    tasks = {(e["pid"], rows[e["pid"], e["tid"]], e["name"]) for e in events if e.get("ph") == "X"}
    for rank, stage, m in ((0, 0, 0), (1, 1, 1), (2, 0, 2), (3, 1, 3)):
        for name in ("forward", "backward"):
            assert (rank, f"micro-batch {m}", f"{name} of stage {stage}") in tasks, (rank, m, name)


def bad_plans_are_refused(folder):
    with open(f"{folder}/rules.toml", "w") as f:
        f.write('pipeline = 2\n[[layer]]\nmatch = "fx*"\n[[layer]]\nmatch = "fc*"\nways = 3\nstage = 7\n')
    for workers, plan, words in (("4", "pipeline=3", ["pipeline=3 does not divide 4 workers", "nearest plan"]),
                                 ("4", "pipeline=99,data=2", ["stages", "workers", "nearest plan"]),
                                 ("2", "pipline=2,schedule=1f1", ["did you mean 'pipeline'", "1f1b"]),
                                 ("2", "no-such-file.toml", ["no such file"]), ("2", "gpip", ["did you mean 'gpipe'"]),
                                 ("2", "tensor=2", ["tensor=2 does not divide model.slices = 1", "--set model.slices=2 cuts them"]),
                                 ("2", "pipeline=2,zero=1", ["zero=1 shares the state", "there is one", "nearest plan"]),
                                 ("2", "recompute=blok*,zero=1", ["no layer has such a name"]),
                                 ("2", "pipeline=2,cuts=conv9", ["no layer 'conv9'", "did you mean"]),
                                 ("2", "pipeline=2,sync=vertical", ["sync"]),
                                 ("4", "pipeline=3,schedule=pipedream", ["schedule=pipedream,sync=stash"]),
                                 ("2", f"{folder}/rules.toml", ["match = \"fx*\" fits no layer",
                                                                "does not divide", "stage = 7", "nearest plan"]),
                                 ("4", "data=3,pipeline=2", ["a plan for 6 workers, and there are 4"])):
        run = f"{folder}/refused"
        child = start(run, *SHORT, "--workers", workers, "--plan", plan)
        _, err = child.communicate()
        assert child.returncode == 2, (plan, child.returncode, err)
        for word in words:
            assert word in err, (plan, word, err)
        assert not os.path.exists(run), plan
        checked = subprocess.run([PROGRAM, "check", "recipes/demo.toml", *SHORT, "--workers", workers, "--plan", plan],
                                 cwd=SOURCE, text=True, capture_output=True)
        assert checked.returncode == 2, plan


def plans_are_shown(folder):
    text = show("--workers", "4", "--plan", "pipeline=2", "--svg", f"{folder}/schedule.svg")
    for word in ("stage", "rank 1", "idle", "activations"):
        assert word in text, (word, text)
    svg = open(f"{folder}/schedule.svg").read()
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>") and "forward of stage 1" in svg
    assert "prefers-color-scheme:dark" in svg and ">backward</text>" in svg  # as all pictures are drawn


with tempfile.TemporaryDirectory() as folder:
    bad_plans_are_refused(folder)
    assert {"gpipe", "pipedream_flush", "interleaved", "zero_bubble", "zero_bubble_v", "chimera", "dualpipe", "pipedream",
            "pipedream_vertical", "gnmt", "deep_stacking", "zero_1", "zero_3", "one_weird_trick", "megatron",
            "mesh_tensorflow", "distbelief_partition", "cots_hpc", "vertical", "horizontal", "gshard",
            "sequence", "summa", "overlapping_strips", "geeps_memory", "litz"} <= {p["name"] for p in published()}
    layers_are_placed_by_hand(folder)
    pipedream_has_a_result_of_its_own(folder)
    gpipe_is_as_fast_as_its_formula_in_the_simulation(folder)
    plans_are_shown(folder)
    same_weights_under_every_plan(folder)
    same_weights_with_slices_on_several_ranks(folder)
    published_plans_train_the_weights_of_one_worker(folder)
    bytes_are_known_before(folder)
    a_plan_that_needs_more_memory_is_refused_with_those_that_fit(folder)
    a_killed_run_goes_on_under_another_plan(folder)
    checkpoints_load_under_any_other_plan(folder)
    a_wait_names_the_stage_and_the_micro_batch(folder)
    a_trace_has_a_row_for_each_rank_and_micro_batch(folder)
    print("plans: fine")
