"""`systems` and `compare` as a user calls them."""
import fcntl, json, os, pathlib, pty, re, shlex, shutil, signal, struct, subprocess, sys, tempfile, termios, time, unittest

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
SYSTEMS = os.path.join(SOURCE, "recipes/systems")
QUICK = ["--set", "data.limit=300", "--set", "data.limit_test=100", "--set", "train.eval_every_steps=2"]


def run(*words, cwd=SOURCE, ok=True):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stderr}"
    return done


class Systems(unittest.TestCase):
    def test_all_are_listed_in_the_columns_of_the_taxonomy(self):
        listed = json.loads(run("systems", "--json").stdout)
        self.assertEqual(sorted(s["name"] for s in listed), sorted(p.stem for p in pathlib.Path(SYSTEMS).glob("*.toml")))
        for s in listed:
            self.assertEqual(set(s["taxonomy"]), {"parallelism", "optimisation", "scheduling", "exchange", "topology", "encoding"})
        text = run("systems").stdout
        for s in listed:
            self.assertIn(f"\n{s['name']} ", text)
            self.assertIn(s["paper"], text)

    def test_nothing_is_wider_than_the_terminal(self):
        for columns in (60, 80, 120):
            ours, its = pty.openpty()
            fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            child = subprocess.Popen([PROGRAM, "systems"], stdout=its, cwd=SOURCE)
            os.close(its)
            out = b""
            try:
                while piece := os.read(ours, 65536):
                    out += piece
            except OSError:  # its side is closed
                pass
            os.close(ours)
            self.assertEqual(child.wait(), 0)
            lines = out.decode().splitlines()
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertTrue(any(l.startswith("easgd ") for l in lines))

    def test_what_is_shown_is_whole_and_in_lines(self):
        out = run("systems", "show", "eamsgd").stdout + run("systems", "show", "ssp").stdout
        self.assertNotIn("\u2026", out)
        formula = out.split("as encoded)\n")[-1].split("\n  lenet5")[0]
        self.assertIn("every worker sends all servers their parts", " ".join(formula.split()))
        self.assertLessEqual(max(map(len, formula.splitlines())), 80)

    def test_show_has_a_systems_place_among_the_published_ones(self):
        flat = lambda name: " ".join(run("systems", "show", name).stdout.split())
        ssp, fixed16, diloco = flat("ssp"), flat("fixed16"), flat("diloco")
        self.assertIn('"SSP (Cipar, Ho, Cui)" in Langer et al.', ssp)
        self.assertIn("Faithful to the published system", ssp)
        self.assertIn("98.5 % of the test digits after 4 epochs", ssp)
        self.assertIn("4 (n-1) for each key", ssp)
        self.assertIn("Deviates from the published system Products are summed up in float32", fixed16)
        self.assertIn("In the surveys in none of them", diloco)
        for system in json.loads(run("systems", "--json").stdout):
            j = json.loads(run("systems", "show", system["name"], "--json").stdout)
            self.assertTrue(j["traffic"]["messages_formula"], system["name"])
            self.assertEqual(bool(j["row"]), bool(j["surveys"]))
            self.assertEqual(j["faithful"], not j["deviates"])

    def test_they_are_found_from_any_directory(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            self.assertEqual(run("systems", "--json", cwd=elsewhere).stdout, run("systems", "--json").stdout)

    def test_show_says_all_of_it(self):
        for name in ("easgd", os.path.join(SYSTEMS, "easgd.toml")):
            text = run("systems", "show", name).stdout
            for words in ("Elastic averaging", "Zhang, Choromanska, LeCun", "Every worker", "Server", "elastic force",
                          "tau = 10 (default 1)", "alpha = ", "Use it when", "Avoid it when", "Bytes per step"):
                self.assertIn(words, text)
        shown = json.loads(run("systems", "show", "easgd", "--json").stdout)
        self.assertEqual(shown["composition"]["rule"]["name"], "elastic")
        tau = [k for k in shown["composition"]["when"]["settings"] if k["key"] == "when.tau"]
        self.assertEqual((tau[0]["value"], tau[0]["default"], tau[0]["set"]), ("10", "1", True))

    def test_show_says_where_a_system_deviates(self):
        text = run("systems", "show", "geeps").stdout
        self.assertIn("Deviates from the published system\n  GeePS swaps between the memories", text)
        self.assertIn("between memory and a file", json.loads(run("systems", "show", "geeps", "--json").stdout)["deviates"])
        self.assertNotIn("Deviates", run("systems", "show", "bsp").stdout)
        self.assertEqual(json.loads(run("systems", "show", "bsp", "--json").stdout)["deviates"], "")

    def test_old_keys_are_refused_with_the_new_name(self):
        for setting, cure in (("exchange.tau=3", "exchange.tau is now when.tau"), ("exchange.n_push=2", "is now when.n_push"),
                              ("local.optim.name=sgd", "a recipe says it itself: [optim]")):
            refused = run("check", RECIPE, "--system", "easgd", "--set", setting, ok=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(cure, refused.stderr)

    def test_an_order_that_follows_from_the_other_parts_is_shown(self):
        for name, order in (("bsp", "backward"), ("ssp", "backward"), ("easgd", "whole"), ("horovod", "fusion")):
            shown = json.loads(run("systems", "show", name, "--json").stdout)
            self.assertEqual(shown["composition"]["order"]["name"], order, name)

    def test_a_field_has_one_type_in_all_systems(self):
        types = {}

        def look(value, path):
            if isinstance(value, dict):
                for key, inner in value.items():
                    look(inner, f"{path}.{key}")
            elif isinstance(value, list):
                for inner in value:
                    look(inner, path + "[]")
            else:
                types.setdefault(path, {}).setdefault(float if isinstance(value, int) and not isinstance(value, bool)
                                                      else type(value), name)
        for s in json.loads(run("systems", "--json").stdout):
            name = s["name"]
            shown = json.loads(run("systems", "show", name, "--json").stdout)
            self.assertEqual(list(shown), list(types.setdefault("keys", list(shown))), name)
            for axis in shown["composition"].values():
                for k in axis["settings"]:
                    self.assertEqual({key: type(v) for key, v in k.items()},
                                     dict(key=str, about=str, default=str, value=str, set=bool), (name, k))
            look({key: v for key, v in shown.items() if key != "composition"}, "")
        types.pop("keys")
        self.assertEqual({path: kinds for path, kinds in types.items() if len(kinds) > 1}, {})

    def test_the_json_is_documented(self):
        rows = {}
        for line in pathlib.Path(SOURCE, "docs/runs.md").read_text().splitlines():
            if line.startswith("| `") and line.count("|") >= 3:
                rows[line.split("`")[1]] = line

        def keys(value):
            if isinstance(value, dict):
                return set(value) | set().union(*map(keys, value.values()))
            return set().union(*map(keys, value)) if isinstance(value, list) else set()
        with tempfile.TemporaryDirectory() as folder:
            compared = run("compare", RECIPE, *QUICK, "--systems", "bsp,easgd", "--workers", "2", "--world", "sim", "--epochs",
                           "1", "--target", "0.1", "--root", folder, "--json").stdout.splitlines()[-1]
        shown = json.loads(run("systems", "show", "eamsgd", "--json").stdout)
        shown["local"] = {}  # a recipe's own tables
        for verb, value in (("systems", json.loads(run("systems", "--json").stdout)), ("systems show", shown),
                            ("systems parts", json.loads(run("systems", "parts", "--json").stdout)),
                            ("compare", json.loads(compared))):
            for key in sorted(keys(value)):
                known = rows.get(verb, "") + (rows["systems"] if verb == "systems show" else "")  # which says "the same"
                self.assertIn(f"`{key}`", known, verb)

    def test_bytes_of_factors_follow_the_batch(self):
        layers = [(400, 120), (120, 84), (84, 10)]  # lenet5's fully connected ones
        bytes_of = lambda name, batch, workers=4: json.loads(run(
            "systems", "show", name, "--workers", str(workers), "--batch", str(batch), "--json").stdout)["traffic"]["bytes_per_step"]
        both = sum(i + o for i, o in layers)
        # Factors to all: 4 bytes a number, each sample's to all others.
        self.assertEqual(bytes_of("sfb", 16) - bytes_of("sfb", 8), 3 * 4 * 8 * both)
        self.assertGreater(bytes_of("sfb", 4096), bytes_of("bsp", 4096))
        # The hybrid sends factors to all where they are smaller; whole, there are 2 (n-1) 4 in out bytes.
        saved = lambda batch: sum(max(0, 2 * i * o - batch * (i + o)) for i, o in layers)
        for batch in (4, 16, 64):
            self.assertEqual(bytes_of("poseidon", 4096) - bytes_of("poseidon", batch), 3 * 4 * saved(batch))
        # To the server, and on to its replica: of each worker's samples, where they are smaller than the gradient.
        saved = lambda samples: sum(max(0, i * o - samples * (i + o)) for i, o in layers)
        for samples in (1, 4, 16):
            self.assertEqual(bytes_of("adam_project", 4096) - bytes_of("adam_project", 4 * samples), (3 + 4) * 4 * saved(samples))
        self.assertEqual(bytes_of("adam_project", 4096), bytes_of("adam_project", 8192))

    def test_show_tells_bounds_from_figures(self):
        for name, bound in (("bsp", False), ("a_bsp", True)):
            self.assertEqual("): at most " in " ".join(run("systems", "show", name).stdout.split()), bound, name)
            self.assertEqual(json.loads(run("systems", "show", name, "--json").stdout)["traffic"]["at_most"], bound)

    def test_show_refuses_as_many_workers_as_the_graph_has_no_room_for(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(SYSTEMS, "d_psgd.toml").read_text().replace('name = "neighbour"', 'name = "neighbour"\ngraph = "hypercube"')
            path = pathlib.Path(folder, "cube.toml")
            path.write_text("\n".join(l for l in text.splitlines() if not l.startswith('graph = "ring"')))
            run("systems", "show", str(path), "--workers", "8")
            done = run("systems", "show", str(path), "--workers", "6", ok=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("hypercube", done.stderr)

    def test_the_time_of_every_worker_is_accounted_for(self):
        with tempfile.TemporaryDirectory() as folder:
            for system in ("priority", "horovod", "easgd"):
                done = run("train", RECIPE, "--system", system, "--workers", "2", "--set", "train.epochs=1", "--link", "200mbit",
                           "--json", "--trace", "--run", os.path.join(folder, system))
                result = json.loads(done.stdout.splitlines()[-1])
                for rank in result["ranks"]:
                    self.assertGreater(rank["compute_s"], 0)
                    self.assertGreater(rank["exchange_s"], 0)
                    self.assertLessEqual(rank["compute_s"] + rank["exchange_s"], result["seconds"])
                traced = pathlib.Path(folder, system, "trace.json").read_text()
                self.assertGreaterEqual(traced.count('"exchange and update"'), result["steps"])

    def test_a_server_that_is_made_to_lose_its_state_is_in_the_log(self):
        with tempfile.TemporaryDirectory() as folder:
            where = pathlib.Path(folder, "r")
            out = run("train", RECIPE, *QUICK, "--set", "train.epochs=1", "--system", "parameter_server", "--set", "exchange.servers=1",
                      "--set", "exchange.replicas=2", "--set", "exchange.kill_server=0.1@3", "--workers", "3", "--run", str(where)).stdout
            line = "server 0.1 on rank 1 has lost its state after 3 updates"
            self.assertEqual(out.count(line), 1, out)
            logs = [(where / f"logs/rank_{r}.log").read_text() for r in range(3)]
            self.assertEqual([log.count(line) for log in logs], [1, 1, 0])
            self.assertIn(": 0.0 on rank 0 answers from now on", logs[0])

    def test_training_goes_on_when_a_server_process_is_killed(self):
        def children(process):
            try:
                return [int(c) for task in os.listdir(f"/proc/{process}/task")
                        for c in pathlib.Path(f"/proc/{process}/task/{task}/children").read_text().split()]
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                return []
        def is_server(process):
            try:
                return pathlib.Path(f"/proc/{process}/comm").read_text().strip() == "echelon-server"
            except (FileNotFoundError, ProcessLookupError):
                return False
        def killed_once(where):  # at any time: perhaps just when it has done its work
            job = subprocess.Popen([PROGRAM, "train", RECIPE, "--system", "adam_project", "--world", "processes", "--workers", "3",
                                    "--set", "train.epochs=1", "--link", "200mbit", "--run", str(where)], stdout=subprocess.PIPE, text=True)
            servers = []
            while job.poll() is None and not servers:
                servers = [s for rank in children(job.pid) for s in children(rank) if is_server(s)]
                time.sleep(0.01)
            for server in servers[:1]:
                os.kill(server, signal.SIGKILL)
            out = job.communicate()[0]
            self.assertEqual(job.returncode, 0, out)
            return out, "".join((where / f"logs/rank_{r}.log").read_text() for r in range(3))
        with tempfile.TemporaryDirectory() as folder:
            for attempt in range(5):
                out, logs = killed_once(pathlib.Path(folder, str(attempt)))
                if "was killed by signal 9" in logs:
                    break
            self.assertEqual(logs.count("was killed by signal 9 (Killed): the replicas of its servers take over"), 1, logs)
            self.assertIn("has lost its state with its process", out)

    def test_a_worker_with_little_memory_fetches_its_model_and_has_the_same_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe = pathlib.Path(folder, "wide.toml")
            recipe.write_text('[model]\nname = "mlp"\nhidden = [300, 300, 300]\n[data]\nkind = "synthetic"\nmake = "blobs"\nsamples = 64\n'
                              'shape = [40]\nclasses = 4\n[optim]\nname = "momentum"\nlr = 0.01\n[train]\nepochs = 1\nbatch = 16\nshards = 2\n')
            def geeps(memory, ok=True):
                return run("train", str(recipe), "--system", "geeps", "--set", f"exchange.memory={memory}", "--set", f"exchange.swap={folder}",
                           "--workers", "2", "--run", os.path.join(folder, memory), ok=ok)
            def weights(out):
                return re.search(r"sha256 (\w+)", out).group(1)
            whole, files = geeps("1GiB").stdout, geeps("1200KiB").stdout
            self.assertNotIn("offloads=all", whole)
            self.assertIn(f"offload={folder},offloads=all", files)
            self.assertEqual(weights(whole), weights(files))
            refused = geeps("4KiB", ok=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("exchange.memory: a worker needs", refused.stderr)
            self.assertFalse(os.path.exists(os.path.join(folder, "4KiB")))
            self.assertIn("is no size", geeps("much", ok=False).stderr)

    def test_a_simulated_worker_has_one_core(self):
        done = run("train", RECIPE, "--world", "sim", "--workers", "2", "--cores", "2", ok=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("leave out --cores", done.stderr)

    def test_an_order_that_would_not_be_kept_is_refused(self):
        for system, setting, cure in (("bsp", "order.bytes=100000", "leave out order.bytes"),
                                      ("bigdl", "order.name=fusion", "take order whole"),
                                      ("bigdl", "order.name=priority", "take order whole"),
                                      ("easgd", "order.name=backward", "take order whole")):
            with tempfile.TemporaryDirectory() as empty:
                done = run("train", RECIPE, "--system", system, "--workers", "2", "--set", setting, cwd=empty, ok=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(cure, done.stderr)
                self.assertEqual(os.listdir(empty), [])

    def test_check_finds_what_train_would_refuse(self):
        bad = [("easgd", ["exchange.tua=3"]), ("easgd", ["rule.name=elastik"]), ("ssp", ["sync.staleness=-1"]),
               ("fp16", ["codec.name=fp17"]), ("bsp", ["order.bytes=100000"]), ("bsp", ["order.name=foo", "codec.name=bar"]),
               ("bigdl", ["order.name=fusion"]), ("easgd", ["sync.name=bsp"]), ("parameter_server", ["exchange.replicas=3"]),
               ("ssp", ["optim.name=lars"]), ("parameter_server", ["exchange.kill_server=0@99999"])]
        with tempfile.TemporaryDirectory() as empty:
            for system, settings in bad:
                words = [RECIPE, "--system", system, "--workers", "2", *(w for s in settings for w in ("--set", s))]
                refused, found = run("train", *words, cwd=empty, ok=False), run("check", *words, cwd=empty, ok=False)
                self.assertEqual((refused.returncode, found.returncode), (2, 2), (words, found.stdout))
                self.assertEqual(found.stderr, refused.stderr)
                listed = json.loads(run("check", *words, "--json", cwd=empty, ok=False).stdout)
                self.assertFalse(listed["ok"])
                for problem in listed["problems"]:
                    self.assertIn(problem["text"], refused.stderr)
            self.assertEqual(os.listdir(empty), [])

    def test_check_leaves_out_what_depends_on_workers_that_nobody_has_named(self):
        for system in pathlib.Path(SYSTEMS).glob("*.toml"):
            run("check", RECIPE, "--system", system.stem, *(["--set", "optim.name=sgd"] if system.stem == "dgc" else []))
        words = ["check", RECIPE, "--system", "parameter_server", "--set", "exchange.replicas=3"]
        run(*words)
        run(*words, "--workers", "3")
        self.assertIn("exchange.replicas to at most 2", run(*words, "--workers", "2", ok=False).stderr)

    def test_a_misspelt_name_is_refused_with_the_nearest(self):
        for words in (("systems", "show", "esgd"), ("train", RECIPE, "--system", "esgd"), ("check", RECIPE, "--system", "esgd"),
                      ("compare", RECIPE, "--systems", "bsp,esgd")):
            with tempfile.TemporaryDirectory() as empty:
                done = run(*words, cwd=empty, ok=False)
                self.assertEqual(done.returncode, 2, words)
                self.assertIn("did you mean 'easgd'?", done.stderr)
                self.assertEqual(os.listdir(empty), [])

    def test_a_resumed_run_has_the_system_it_began_with(self):
        with tempfile.TemporaryDirectory() as folder:
            where = os.path.join(folder, "run")
            run("train", RECIPE, *QUICK, "--set", "train.epochs=1", "--system", "sparknet", "--set", "when.tau=3",
                "--workers", "2", "--run", where)
            saved = pathlib.Path(where, "recipe.toml").read_text()
            self.assertIn('composed_from = "sparknet"', saved)
            self.assertIn("tau = 3", saved)
            self.assertTrue(json.loads(run("check", os.path.join(where, "recipe.toml"), "--json").stdout)["ok"])
            # Also if it was stopped before anything was saved: another recipe is refused, its own begins anew.
            shutil.rmtree(os.path.join(where, "checkpoints"))
            done = run("train", RECIPE, *QUICK, "--workers", "2", "--run", where, "--resume", ok=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("was begun with another recipe", done.stderr)
            self.assertIn("rule.name = ", done.stderr)
            self.assertEqual(pathlib.Path(where, "recipe.toml").read_text(), saved)
            again = run("train", os.path.join(where, "recipe.toml"), "--workers", "2", "--run", where, "--resume", "--json")
            self.assertEqual(json.loads(again.stdout.splitlines()[-1])["epochs"], 1)

    def test_metrics_of_workers_at_their_own_pace_are_possible_and_grow(self):
        with tempfile.TemporaryDirectory() as folder:
            where = os.path.join(folder, "run")
            run("train", RECIPE, *QUICK, "--set", "train.epochs=4", "--system", "easgd", "--workers", "4", "--run", where)
            rows = [json.loads(line) for line in pathlib.Path(where, "metrics.jsonl").read_text().splitlines()]
            for row in rows:
                self.assertGreaterEqual(row.get("train_loss", 0), 0, row)
                self.assertLessEqual(row.get("train_accuracy", 0), 1, row)
            for name in ("bytes", "samples", "step"):
                self.assertEqual([r[name] for r in rows], sorted(r[name] for r in rows), name)

    def test_one_process_at_a_time_trains_in_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            where = os.path.join(folder, "run")
            words = ["train", RECIPE, *QUICK, "--system", "easgd", "--workers", "2", "--run", where]
            first = subprocess.Popen([PROGRAM, *words, "--set", "train.epochs=100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                while not (os.path.isdir(where + "/checkpoints") and os.listdir(where + "/checkpoints")):
                    self.assertIsNone(first.poll())
                    time.sleep(0.05)
                second = run(*words, "--set", "train.epochs=1", "--resume", ok=False)
                self.assertEqual(second.returncode, 2, second.stderr)
                self.assertIn("another process is training in", second.stderr)
            finally:
                first.terminate()
                first.wait()

    def test_a_resumed_coordinator_goes_on_with_its_history(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ["train", RECIPE, *QUICK, "--set", "train.batch=300", "--set", "schedule.name=constant", "--system", "sandblaster",
                     "--workers", "3", "--json"]
            ends = [run(*words, *more) for more in (
                ["--set", "train.epochs=6", "--run", os.path.join(folder, "whole")],
                ["--set", "train.epochs=3", "--run", os.path.join(folder, "run")],
                ["--set", "train.epochs=6", "--run", os.path.join(folder, "run"), "--resume"])]
            whole, half, again = (json.loads(end.stdout.splitlines()[-1])["weights_sha256"] for end in ends)
            self.assertEqual(again, whole)
            self.assertNotEqual(half, whole)

    def test_a_resumed_run_has_the_graph_it_began_with(self):
        with tempfile.TemporaryDirectory() as folder:
            where, edges = os.path.join(folder, "run"), pathlib.Path(folder, "my.edges")
            words = [*QUICK, "--set", "schedule.name=constant", "--system", "d_psgd", "--set", "exchange.graph=file", "--set", f"exchange.file={edges}",
                     "--workers", "4", "--world", "sim", "--json"]
            edges.write_text("0 1\n1 2\n2 3\n")
            whole = run("train", RECIPE, *words, "--set", "train.epochs=2", "--run", os.path.join(folder, "whole"))
            run("train", RECIPE, *words, "--set", "train.epochs=1", "--run", where)
            edges.write_text("0 1\n1 2\n2 3\n3 0\n")
            done = run("train", RECIPE, *words, "--set", "train.epochs=2", "--run", where, "--resume", ok=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("exchange.edges = ", done.stderr)
            edges.unlink()
            done = run("train", RECIPE, *words, "--run", os.path.join(folder, "other"), ok=False)
            self.assertIn("exchange.file cannot be used", done.stderr)
            again = run("train", os.path.join(where, "recipe.toml"), "--set", "train.epochs=2", "--workers", "4", "--world",
                        "sim", "--run", where, "--resume", "--json")
            ends = [json.loads(done.stdout.splitlines()[-1]) for done in (whole, again)]
            self.assertEqual(*(end["weights_sha256"] for end in ends))
            # The curves go on where they were; the summary is of what the second process has done, which is half.
            lines = [pathlib.Path(folder, name, "metrics.jsonl").read_text().splitlines() for name in ("whole", "run")]
            sent, in_both = (json.loads(of_run[-1])["bytes"] for of_run in lines)
            self.assertAlmostEqual(in_both / sent, 1, places=3)  # but for what a round more says at its end
            self.assertAlmostEqual(ends[1]["bytes"] / ends[0]["bytes"], 0.5, places=3)

    def test_the_same_weights_are_promised_only_where_it_is_so(self):
        def said_next(*words):
            with tempfile.TemporaryDirectory() as root:
                out = run("train", RECIPE, *QUICK, "--set", "train.epochs=1", *words, "--run", os.path.join(root, "r")).stdout
                digest = out.split("sha256 ")[1].split()[0]
                return digest, [l.strip() for l in out.splitlines() if l.startswith("  echelon train ")]

        digest, (again,) = said_next("--workers", "2")
        command, promise = again.split("        ")
        self.assertEqual(promise, "the same weights, bit for bit")
        words = shlex.split(command)
        with tempfile.TemporaryDirectory() as root:
            self.assertIn(digest, run(*words[1:], "--run", os.path.join(root, "r")).stdout)
        # What another system gets depends on its workers and on who comes first: the same command is not suggested again.
        self.assertEqual(said_next("--workers", "2", "--system", "dgc", "--set", "codec.share=0.01")[1], [])


class Compare(unittest.TestCase):
    def test_table_plots_and_runs(self):
        with tempfile.TemporaryDirectory() as root:
            done = run("compare", RECIPE, "--systems", "bsp,sparknet", "--workers", "2", "--epochs", "3", *QUICK, "--root", root,
                       "--target", "0.01", "--json")
            result = json.loads(done.stdout.strip().splitlines()[-1])
            self.assertEqual([r["system"] for r in result["results"]], ["bsp", "sparknet"])
            for r in result["results"]:
                self.assertEqual(r["ended_by"], "end")
                self.assertGreater(r["samples_per_s"], 0)
                self.assertTrue(0 < r["seconds_to_target"] <= r["seconds"])
                self.assertTrue(os.path.exists(os.path.join(r["run_dir"], "summary.json")))
                points = [json.loads(line) for line in pathlib.Path(r["run_dir"], "metrics.jsonl").read_text().splitlines()]
                self.assertEqual(points[-1]["samples"], 900)
            names = {os.path.basename(p) for p in result["plots"]}
            self.assertTrue({"loss-time.svg", "loss-samples.svg", "accuracy-time.svg", "accuracy-samples.svg"} <= names, names)
            for path in result["plots"]:
                svg = pathlib.Path(path).read_text()
                self.assertIn("sparknet", svg)
            # Alone, each would have got the same.
            alone = json.loads(run("train", RECIPE, "--system", "bsp", *QUICK, "--set", "train.epochs=3", "--workers", "2",
                                   "--run", os.path.join(root, "alone"), "--json").stdout.strip().splitlines()[-1])
            self.assertEqual(alone["test_accuracy"], result["results"][0]["test_accuracy"])

    def test_for_people(self):
        with tempfile.TemporaryDirectory() as root:
            out = run("compare", RECIPE, "--systems", "bsp", "--epochs", "1", *QUICK, "--root", root).stdout
            for words in ("training loss against time", "accuracy against samples", "system", "samples/s", "bytes/step", "bsp"):
                self.assertIn(words, out)

    def test_the_table_says_why_there_are_no_bytes(self):
        with tempfile.TemporaryDirectory() as root:
            for world, none in (([], True), (["--link", "10gbit"], False)):
                out = run("compare", RECIPE, "--systems", "bsp", "--epochs", "1", *QUICK, "--workers", "2", *world, "--root",
                          root).stdout
                self.assertEqual("bytes/step 0: " in out, none, out)
                self.assertEqual("against bytes" in out, not none, out)

    def test_bytes_are_always_in_the_summary(self):
        for words, sends in ((["--workers", "1"], False), (["--workers", "2"], False), (["--workers", "2", "--world", "threads"], False),
                             (["--workers", "1", "--system", "sparknet"], False), (["--workers", "2", "--world", "sim"], True),
                             (["--workers", "2", "--system", "sparknet"], True)):
            with tempfile.TemporaryDirectory() as folder:
                where = pathlib.Path(folder, "r")
                run("train", RECIPE, *QUICK, "--set", "train.epochs=1", *words, "--run", str(where))
                self.assertEqual(json.loads((where / "summary.json").read_text())["bytes"] > 0, sends, words)

    def test_the_table_says_how_many_workers_had_work(self):
        words = ["compare", RECIPE, "--systems", "bsp,easgd", "--epochs", "1", *QUICK, "--workers", "4", "--cores", "1"]
        with tempfile.TemporaryDirectory() as root:
            for settings, working in (([], 2), (["--set", "train.shards=4"], 4), (["--set", "train.batch=128"], 4)):
                out = run(*words, *settings, "--root", root).stdout
                self.assertEqual("bsp: only 2 of 4 workers had work, as a batch has 2 shards" in out, working == 2, out)
                self.assertEqual(out.count("workers had work"), working == 2, out)
                newest = max(pathlib.Path(root).glob("compare-*"), key=lambda p: int(p.name.split("-")[1]))
                results = json.loads((newest / "comparison.json").read_text())["results"]
                self.assertEqual([(r["workers"], r["working_workers"]) for r in results], [(4, working), (4, 4)])

    def test_a_system_twice_and_a_bad_setting_are_refused_before_anything_runs(self):
        with tempfile.TemporaryDirectory() as empty:
            done = run("compare", RECIPE, "--systems", "bsp,bsp", cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("names bsp twice", done.stderr)
            done = run("compare", RECIPE, "--systems", "bsp,easgd", "--set", "train.epochz=3", cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("did you mean 'epochs'", done.stderr)
            done = run("compare", RECIPE, "--systems", "bsp,,ssp", cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("empty name", done.stderr)
            done = run("compare", RECIPE, "--systems", "bsp,ssp,fp16", "--workers", "4", "--set", "order.name=foo", cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("order.name must be one of"), 1, done.stderr)
            done = run("compare", RECIPE, "--systems", "bsp,ssp", "--world", "sim", "--workers", "4", "--cluster",
                       os.path.join(SOURCE, "recipes/clusters/two-racks.toml"), cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("leave out --workers"), 1, done.stderr)
            self.assertEqual(os.listdir(empty), [])

    def test_a_world_that_one_of_them_cannot_live_in_is_refused_before_anything_runs(self):
        with tempfile.TemporaryDirectory() as empty:
            for world in (["--link", "100mbit"], ["--world", "sim"]):
                done = run("compare", RECIPE, "--systems", "bsp,hogwild", "--workers", "2", *world, cwd=empty, ok=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("hogwild", done.stderr)
                self.assertIn("memory", done.stderr)
            done = run("compare", RECIPE, "--systems", "bsp,easgd", "--workers", "2", "--straggler", "rank=2,factor=4",
                       cwd=empty, ok=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("there is no rank 2", done.stderr)
            self.assertEqual(os.listdir(empty), [])

    def test_ctrl_c_saves_the_run_and_reports(self):
        with tempfile.TemporaryDirectory() as root:
            going = subprocess.Popen([PROGRAM, "compare", RECIPE, "--systems", "bsp,easgd", "--epochs", "100000", "--workers", "2",
                                      "--root", root], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE,
                                     start_new_session=True)
            metrics = pathlib.Path(root, "compare-1/bsp/metrics.jsonl")
            while going.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 3):
                time.sleep(0.05)
            os.killpg(going.pid, signal.SIGINT)  # as the terminal does
            out, err = going.communicate()
            self.assertEqual(going.returncode, 1, err)
            self.assertIn("stopped by a signal after 1 of 2 systems", err)
            self.assertIn("bsp was stopped", out)
            self.assertNotIn("failed", out + err)
            summary = json.loads(pathlib.Path(root, "compare-1/bsp/summary.json").read_text())
            self.assertEqual(summary["stopped_by"], "signal")
            self.assertTrue(os.listdir(os.path.join(root, "compare-1/bsp/checkpoints")))
            self.assertFalse(os.path.exists(os.path.join(root, "compare-1/easgd")))
            self.assertIn("bsp", out)


if __name__ == "__main__":
    unittest.main(argv=["systems", *sys.argv[3:]])
