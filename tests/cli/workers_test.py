"""Training with several workers, as a user sees it: the same weights in every world, and what happens when things go
wrong: a worker is killed, stopped for a while, or the launcher is asked to stop; another number of workers goes on."""
import json, os, re, signal, subprocess, sys, tempfile, time

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHORT = ["--set", "data.limit=1500", "--set", "data.limit_test=100", "--set", "train.epochs=3", "--set", "train.shards=6",
         "--set", "train.batch=60", "--set", "train.checkpoint_every_steps=10", "--cores", "1"]
LONG = [*SHORT, "--set", "train.epochs=100000"]


def start(run, *flags):
    return subprocess.Popen([PROGRAM, "train", "recipes/demo.toml", "--run", run, "--json", *flags], cwd=SOURCE, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def train(run, *flags):
    child = start(run, *flags)
    out, err = child.communicate()
    assert child.returncode == 0, (flags, err[-2000:])
    return json.loads(out.splitlines()[-1])


def children(pid):
    return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def wait_until(condition, what):
    for _ in range(60_000):  # a little less than ctest waits: to say what did not happen
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"never happened: {what}")


def wait_for_steps(run, steps):
    path = f"{run}/metrics.jsonl"
    wait_until(lambda: os.path.exists(path) and sum(1 for _ in open(path)) >= steps, f"{steps} lines in {path}")


def gone(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def same_weights_in_every_world(folder):
    wanted = train(f"{folder}/alone", *SHORT)
    for i, flags in enumerate([["--workers", "2"], ["--workers", "3"], ["--workers", "4", "--world", "threads"],
                               ["--workers", "3", "--world", "tcp"], ["--workers", "5", "--world", "sim"],
                               ["--world", "sim", "--cluster", "recipes/clusters/two-racks.toml"]]):
        got = train(f"{folder}/world{i}", *SHORT, *flags)
        for key in ("weights_sha256", "test_loss", "test_accuracy", "train_loss"):
            assert got[key] == wanted[key], (flags, key, got[key], wanted[key])
        assert len(got["ranks"]) == got["workers"] > 1
        assert sum(r["compute_s"] > 0 for r in got["ranks"]) >= min(6, got["workers"])  # six shards
    return wanted["weights_sha256"]


def a_killed_worker_is_named(folder):
    child = start(f"{folder}/killed", *LONG, "--workers", "3")
    wait_for_steps(f"{folder}/killed", 5)
    ranks = children(child.pid)
    assert len(ranks) == 3
    os.kill(ranks[1], signal.SIGKILL)
    _, err = child.communicate()
    assert child.returncode == 1, child.returncode
    assert re.search(r"rank 1.*killed by signal 9", err.strip().splitlines()[-1]), err[-500:]
    for rank in (0, 2):
        log = open(f"{folder}/killed/logs/rank_{rank}.log").read()
        assert "rank 1 was lost (killed by signal 9) during" in log, log[-500:]
    assert all(gone(p) for p in ranks)


def whole_checkpoints(run):
    names = os.listdir(f"{run}/checkpoints") if os.path.exists(f"{run}/checkpoints") else []
    return [n for n in names if re.fullmatch(r"step-\d+", n)]


def a_killed_worker_of_any_system_is_named_and_the_run_goes_on(folder):
    """Replicas at their own pace, with servers, with neighbours: nobody waits for the dead, and what was saved is whole.
    A dead rank takes its servers along, so replicated servers end like all others."""
    flags = [*SHORT, "--set", "train.epochs=4", "--set", "train.batch=30", "--set", "schedule.name=constant", "--workers", "3",
             "--world", "processes"]  # rates that do not follow the length, which changes
    for i, system in enumerate(["ssp", "easgd", "gosgd", "d_psgd", "parameter_server"]):
        run, victim = f"{folder}/killed-{system}", i % 3
        child = start(run, *flags, "--system", system, "--set", "train.epochs=100000")
        wait_until(lambda: whole_checkpoints(run), "a checkpoint")
        ranks = children(child.pid)
        assert len(ranks) == 3, (system, ranks)
        os.kill(ranks[victim], signal.SIGKILL)
        _, err = child.communicate()
        assert child.returncode == 1, (system, child.returncode)
        last = err.strip().splitlines()[-1]
        assert re.search(rf"rank {victim}.*killed by signal 9", last), (system, err[-500:])
        assert all(gone(p) for p in ranks)
        reached = max(int(n.split("-")[1]) for n in whole_checkpoints(run))
        got = train(run, *flags, "--system", system, "--set", f"train.epochs={reached // 50 + 1}", "--resume")
        assert got["stopped_by"] == "end" and got["steps"] == 50 * (reached // 50 + 1), (system, reached, got)
        left = [n for n in os.listdir(f"{run}/checkpoints") if not n.startswith("step-") or n.endswith(".new")]
        assert not left, f"remains of a save: {left}"
        samples = [json.loads(line)["samples"] for line in open(f"{run}/metrics.jsonl") if '"train_loss"' in line]
        assert samples == sorted(set(samples)), f"{system}: metrics.jsonl repeats samples"


def a_killed_launcher_leaves_nobody_behind(folder):
    child = start(f"{folder}/orphans", *LONG, "--workers", "2")
    wait_for_steps(f"{folder}/orphans", 5)
    ranks = children(child.pid)
    child.kill()
    child.communicate()
    wait_until(lambda: all(gone(p) for p in ranks), "the end of the ranks")


def a_stopped_worker_is_named_while_the_others_wait(folder):
    child = start(f"{folder}/late", *LONG, "--workers", "2")
    wait_for_steps(f"{folder}/late", 5)
    late = children(child.pid)[1]
    os.kill(late, signal.SIGSTOP)
    log = f"{folder}/late/logs/rank_0.log"
    wait_until(lambda: re.search(r"waiting \d+\.\d s for rank 1: .*; rank 1 is in ", open(log).read()), "a notice")
    os.kill(late, signal.SIGCONT)
    lines = sum(1 for _ in open(f"{folder}/late/metrics.jsonl"))
    wait_for_steps(f"{folder}/late", lines + 3)  # and it goes on
    child.terminate()
    child.communicate()
    assert child.returncode == 0


def asked_to_stop_it_is_resumable_with_any_number_of_workers(folder, wanted):
    run, flags = f"{folder}/resumed", ["--set", "train.epochs=3"]
    child = start(run, *SHORT, "--workers", "2")
    wait_until(lambda: os.path.exists(f"{run}/metrics.jsonl"), "the first step")
    child.terminate()
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["stopped_by"] in ("signal", "end")
    got = train(run, *SHORT, *flags, "--workers", "3", "--world", "tcp", "--resume")
    assert got["weights_sha256"] == wanted and got["stopped_by"] == "end"


def one_ctrl_c_saves_in_every_world(folder):
    """The terminal signals launcher and ranks together: that is one wish, however often a rank hears of it."""
    for i, flags in enumerate([["--world", "tcp", "--system", "ssp"], ["--world", "processes", "--system", "bsp"]] * 3):
        run = f"{folder}/interrupted{i}"
        child = start(run, *LONG, "--workers", "4", *flags)
        wait_for_steps(run, 2 + i)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate()
        assert child.returncode == 0, (flags, child.returncode, err[-2000:])
        steps = json.loads(out.splitlines()[-1])["steps"]
        assert f"saved at step {steps}." in err and os.listdir(f"{run}/checkpoints"), err[-2000:]


def ctrl_c_while_workers_start_is_not_a_failure(folder):
    for i, flags in enumerate([["--world", "tcp"], ["--world", "processes"], ["--world", "tcp", "--system", "easgd"]]):
        run = f"{folder}/early{i}"
        child = start(run, *LONG, "--workers", "4", *flags)
        wait_until(lambda: len(children(child.pid)) > 0 or child.poll() is not None, "a worker")
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate()
        assert child.returncode == 0, (flags, child.returncode, err[-2000:])
        assert json.loads(out.splitlines()[-1])["stopped_by"] == "signal" and os.listdir(f"{run}/checkpoints"), err[-2000:]


def a_second_ctrl_c_ends_at_once(folder):
    run = f"{folder}/impatient"
    child = start(run, *LONG, "--workers", "3")
    wait_for_steps(run, 2)
    ranks = children(child.pid)
    os.kill(ranks[1], signal.SIGSTOP)  # so that the others cannot come to their good end
    os.killpg(child.pid, signal.SIGINT)
    time.sleep(1)
    assert child.poll() is None
    while child.poll() is None:  # one that comes before the first was taken counts as the same
        os.killpg(child.pid, signal.SIGINT)
        time.sleep(0.2)
    child.communicate()
    assert child.returncode == 128 + signal.SIGINT, child.returncode
    assert all(gone(p) for p in ranks)


def one_trace_shows_all_ranks(folder):
    train(f"{folder}/trace", *SHORT, "--set", "train.epochs=1", "--workers", "2", "--trace")
    events = [e for e in json.load(open(f"{folder}/trace/trace.json"))["traceEvents"] if e.get("ph") == "X"]
    begins = [min(e["ts"] for e in events if e["pid"] == rank) for rank in (0, 1)]
    ends = [max(e["ts"] + e["dur"] for e in events if e["pid"] == rank) for rank in (0, 1)]
    assert max(begins) < min(ends), (begins, ends)  # one clock: they worked at the same time
    assert any("update" in e["name"] for e in events) and any("conv" in e["name"] for e in events)


def main():
    with tempfile.TemporaryDirectory() as folder:
        wanted = same_weights_in_every_world(folder)
        a_killed_worker_is_named(folder)
        a_killed_worker_of_any_system_is_named_and_the_run_goes_on(folder)
        a_killed_launcher_leaves_nobody_behind(folder)
        a_stopped_worker_is_named_while_the_others_wait(folder)
        asked_to_stop_it_is_resumable_with_any_number_of_workers(folder, wanted)
        one_ctrl_c_saves_in_every_world(folder)
        ctrl_c_while_workers_start_is_not_a_failure(folder)
        a_second_ctrl_c_ends_at_once(folder)
        one_trace_shows_all_ranks(folder)


main()
