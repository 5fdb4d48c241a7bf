#!/usr/bin/env python3
"""Promises that an attack had broken: one try of each kind of attack on run folders and data (tests/attack), and what
jobs say of ports, secrets, losses that are no numbers, simulated faults and signals. No time is limited here; the
limits are tried by `make attack`.

    promises_test.py PROGRAM SOURCE
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests/attack"))

import base_runs
import folders
import mutations
import nan
import process
from network import free_port, listeners, processes
from table import Table

DEMO = os.path.join(SOURCE, "recipes/demo.toml")
SMALL = ["--set", "data.limit=640", "--set", "data.limit_test=50", "--cores", "1"]
INSTRUMENTED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ  # then memory is not what it is


def run(*words, code=None, env=None):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=SOURCE,
                          env={**os.environ, **(env or {})})
    assert code is None or done.returncode == code, (words, done.returncode, done.stderr[-2000:])
    return done


def start(*words, env=None):
    return subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=SOURCE, env={**os.environ, **(env or {})}, start_new_session=True)


def wait_until(condition, what):
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def stop(child):
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def last_line(text):
    return [line for line in text.splitlines() if line.strip()][-1]


def one_attack_of_each_kind(folder):
    """Run folders and data: whatever was changed is said or refused."""
    folders.SECONDS = base_runs.SECONDS = 600
    table = Table(examples=3)
    suite = folders.Folders(process.Program(PROGRAM, SOURCE, 0), os.path.join(folder, "attacks"), table)
    seen = set()
    for number, case in enumerate(suite.cases):
        key = (case.test, case.verb.split("-")[0], case.kind if case.item == 2 else "")
        if key in seen:
            continue
        seen.add(key)
        for verdict in suite.attempt(number, random.Random(f"1 folders {number}")):
            table.add("folders", number, verdict)
    if table.failed():
        table.print(lambda name, number: f"tests/attack/run --only {name} --first {number} --tries 1")
    assert not table.failed() and len(seen) > 40, len(seen)


def no_port_is_open_during_training(folder):
    job = start("train", DEMO, *SMALL, "--set", "train.epochs=500", "--world", "tcp", "--workers", 3, "--run", f"{folder}/ports")
    try:
        wait_until(lambda: os.path.exists(f"{folder}/ports/metrics.jsonl"), "the first step")
        wait_until(lambda: listeners(job.pid) == {}, "closed ports")
    finally:
        stop(job)


def both_sides_say_why_they_do_not_meet(folder):
    secret = f"{folder}/job.secret"
    run("secret", secret, code=0)
    other = {"ECHELON_SECRET": os.urandom(32).hex()}
    key = ["--secret-file", secret]
    pairs = [("secret", key, [], other), ("job", key, [*key, "--rdzv-id", "other"], {}),
             ("TLS", [*key, "--tls"], key, {}), ("TLS", key, [*key, "--tls"], {})]
    for word, first_flags, second_flags, env in pairs:
        port = free_port()
        words = ["train", DEMO, *SMALL, "--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{port}", "--run", f"{folder}/never"]
        first = start(*words, *first_flags)
        try:
            wait_until(lambda: port in listeners(first.pid), "the rendezvous")
            assert first.stderr is not None
            second = run(*words, *second_flags, env=env, code=2)
            assert word in last_line(second.stderr), second.stderr
            said = ""
            while word not in said:  # a line at least: the wait for the other machine is told before, or after
                said = first.stderr.readline()
                assert said, "the first one has ended"
        finally:
            stop(first)


def weak_secrets_are_refused(folder):
    for weak in ("0" * 64, "ab" * 32, "0123456789abcdef" * 4, "1" * 30, "x" * 64):
        done = run("train", DEMO, "--nnodes", 2, "--run", f"{folder}/weak", env={"ECHELON_SECRET": weak}, code=2)
        assert "secret" in done.stderr, done.stderr


def a_machine_that_comes_late_makes_no_second_job(folder):
    secret, port = f"{folder}/late.secret", free_port()
    run("secret", secret, code=0)
    words = ["train", DEMO, *SMALL, "--set", "train.epochs=2000", "--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{port}",
             "--secret-file", secret, "--rdzv-id", "one"]
    first = start(*words, "--run", f"{folder}/early")
    second = start(*words, "--run", f"{folder}/early")
    try:
        wait_until(lambda: os.path.exists(f"{folder}/early/metrics.jsonl"), "the first step")
        assert port not in listeners(first.pid) and port not in listeners(second.pid), "the rendezvous is still open"
        late = run(*words, "--run", f"{folder}/late", code=2)
        assert "the job 'one'" in last_line(late.stderr) and "too late" in late.stderr, late.stderr
        assert not os.path.exists(f"{folder}/late")
    finally:
        stop(first)
        stop(second)


def the_cause_of_a_nan_is_the_last_line(folder):
    suite = nan.NotANumber(process.Program(PROGRAM, SOURCE, 0), folder, Table())
    for system, world in (("bsp", "processes"), ("ssp", "threads"), ("dgc", "sim"), ("horovod", "processes"), ("dc_asgd", "tcp"),
                          ("fixed16", "threads"), ("easgd", "sim"), ("gossip_learning", "threads")):
        done = run("train", suite.recipes["sample"], "--system", system, "--workers", 4, "--world", world, "--cores", 1, "--run",
                   f"{folder}/nan-{system}", code=2)
        line = last_line(done.stderr)
        for wanted in (r"rank \d", r"step \d", r"layer '", rf"sample {nan.BAD_SAMPLE} "):
            assert re.search(wanted, line), (system, world, line)


def planned_faults_happen_or_fail_the_run(folder):
    cluster = f"{folder}/cluster.toml"
    words = ["train", DEMO, *SMALL, "--set", "train.epochs=1", "--world", "sim", "--cluster", cluster]
    machines = '[[machines]]\nname = "m"\ncount = 2\n'
    for name, plan, wanted in (("full", '[[faults.disk_full]]\nmachine = "m0"\n', "the weights at the end were not saved"),
                               ("after", "[[faults.crash]]\nrank = 1\nat = 1e9\n", "1 of 1 planned faults did not happen"),
                               ("crash", "[[faults.crash]]\nrank = 1\nat = 0.001\n", "rank 1")):
        with open(cluster, "w") as file:
            file.write(machines + plan)
        done = run(*words, "--run", f"{folder}/sim-{name}", code=1)
        assert wanted in last_line(done.stderr), done.stderr
        assert "planned fault: " in done.stderr and f"echelon train {DEMO}" in done.stderr, done.stderr


def simulated_workers_share_what_is_equal(folder):
    """Of 4 GiB a two-thousandth is there for each worker, and what does not fit is refused before the start."""
    words = ["train", DEMO, "--world", "sim", "--set", "train.steps=2", "--set", "train.batch=200", "--set",
             "data.limit_test=50"]
    child = start(*words, "--workers", 200, "--run", f"{folder}/many")
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.communicate()
    assert child.returncode == 0
    if not INSTRUMENTED:
        assert used.ru_maxrss < (64 << 10) + 200 * (4 << 20) / 2000, f"{used.ru_maxrss} KiB"
    refused = run(*words, "--workers", 10**5, "--system", "d_psgd", "--run", f"{folder}/too-many", code=2)
    assert "simulate fewer" in refused.stderr and not os.path.exists(f"{folder}/too-many"), refused.stderr


def sighup_saves_like_sigterm(folder):
    signals = (("alone", signal.SIGHUP, []), ("three", signal.SIGHUP, ["--workers", 3]),
               ("simulated", signal.SIGTERM, ["--workers", 3, "--world", "sim"]))
    for name, number, flags in signals:
        child = start("train", DEMO, *SMALL, "--set", "train.epochs=2000", *flags, "--json", "--run", f"{folder}/hup-{name}")
        wait_until(lambda: os.path.exists(f"{folder}/hup-{name}/metrics.jsonl"), "the first step")
        os.kill(child.pid, number)
        out, err = child.communicate()
        assert child.returncode == 0 and json.loads(last_line(out))["stopped_by"] == "signal", err


def a_rank_killed_before_it_is_connected_is_named(folder):
    # Whenever it is killed, the outcome is the same: the training is far longer than this test waits to kill.
    child = start("train", DEMO, *SMALL, "--set", "train.epochs=2000", "--workers", 3, "--world", "tcp", "--tls", "--run",
                  f"{folder}/killed-early")
    wait_until(lambda: len(processes(child.pid)) > 3, "the ranks")
    victim = 1
    os.kill([pid for pid in processes(child.pid) if pid != child.pid][victim], signal.SIGKILL)
    _, err = child.communicate()
    assert child.returncode == 1 and f"rank {victim}" in last_line(err), err


def every_step_stands_once_in_the_metrics(folder):
    for system in ("ssp", "easgd", "parameter_server"):
        path = f"{folder}/once-{system}"
        run("train", DEMO, *SMALL, "--set", "train.epochs=3", "--set", "train.log_every=1", "--system", system, "--workers", 3,
            "--run", path, code=0)
        steps = [json.loads(line)["step"] for line in open(f"{path}/metrics.jsonl") if "train_loss" in line]
        assert steps == sorted(set(steps)) and len(steps) > 5, (system, steps)


def damaged_checkpoints_need_restart(folder):
    path, words = f"{folder}/damaged", ["train", DEMO, *SMALL, "--set", "train.epochs=1"]
    run(*words, "--run", path, code=0)
    for step in os.listdir(f"{path}/checkpoints"):
        mutations.flip(f"{path}/checkpoints/{step}/model.safetensors", random.Random(1), None)
    refused = run(*words, "--run", path, "--resume", code=2)
    assert "--restart" in last_line(refused.stderr), refused.stderr
    again = run(*words, "--run", path, "--resume", "--restart", "--json", code=0)
    assert json.loads(last_line(again.stdout))["stopped_by"] == "end"
    os.remove(f"{path}/recipe.toml")
    for resume in ("--resume", "--resume=auto"):
        refused = run(*words, "--run", path, resume, code=2)
        assert "recipe.toml" in last_line(refused.stderr) or "is not an empty folder" in last_line(refused.stderr), refused.stderr


def rows_of_numbers_can_be_as_long_as_the_input(folder):
    path = f"{folder}/rows"
    run("train", DEMO, *SMALL, "--set", "train.epochs=1", "--run", path, code=0)
    numbers = ",".join(["0.5"] * 784)
    with open(f"{folder}/row.csv", "w") as file:
        file.write(numbers + "\n")
    answers = [json.loads(run("predict", path, given, "--json", code=0).stdout) for given in (numbers, f"{folder}/row.csv")]
    assert answers[0]["class"] == answers[1]["class"] and answers[0]["confidence"] == answers[1]["confidence"]


def remains_of_saves_are_removed(folder):
    path, words = f"{folder}/remains", ["train", DEMO, *SMALL]
    run(*words, "--set", "train.epochs=1", "--run", path, code=0)
    os.makedirs(f"{path}/checkpoints/step-999.new")
    mutations.write(f"{path}/summary.json.new", b"half")
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale = f"{folder}/.new-{os.uname().nodename}-{gone.pid}.{gone.pid}"
    os.makedirs(stale)
    run(*words, "--set", "train.epochs=2", "--run", path, "--resume", code=0)
    assert re.search(r"^epochs = 2$", open(f"{path}/recipe.toml").read(), re.M)  # what made the weights
    assert not [name for name in os.listdir(f"{path}/checkpoints") + os.listdir(path) if name.endswith(".new")]
    run(*words, "--set", "train.epochs=1", "--run", f"{folder}/beside", code=0)
    assert not os.path.exists(stale)


def main():
    tests = [value for name, value in globals().items()
             if callable(value) and getattr(value, "__module__", "") == "__main__"
             and value.__code__.co_varnames[:1] == ("folder",)]
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            began = time.monotonic()
            test(folder)
            print(f"{test.__name__}: {time.monotonic() - began:.1f} s", flush=True)


main()
