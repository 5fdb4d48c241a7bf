"""`echelon board` as a browser, a stranger and Prometheus meet it: over a real socket, with real runs."""
import http.client, json, os, pathlib, shutil, signal, socket, subprocess, sys, tempfile, time, unittest, urllib.parse, urllib.request

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = ["--set", "data.limit=200", "--set", "data.limit_test=50", "--set", "train.epochs=1"]


def train(root, name, *words, wait=True):
    command = [PROGRAM, "train", RECIPE, *QUICK, "--run", os.path.join(root, name), "--json", *words]
    process = subprocess.Popen(command, cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not wait:
        return process
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    return json.loads(out.strip().splitlines()[-1])


class Server:
    def __init__(self, root, *words):
        self.process = subprocess.Popen([PROGRAM, "board", "--root", root, "--port", "0", "--json", *words], cwd=SOURCE,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        said = json.loads(line)
        self.port, self.token = said["port"], said["token"]

    def stop(self):
        self.process.terminate()
        code = self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def ask(self, path, method="GET", body=None, headers=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def get(self, path, **values):
        query = urllib.parse.urlencode(values, doseq=True)
        answer, text = self.ask(path + ("?" + query if query else ""))
        assert answer.status == 200, text
        return json.loads(text)

    def act(self, path, body):
        return self.ask(path, "POST", body, {"Content-Type": "application/json", "Authorization": "Bearer " + self.token})


def until(condition, what):
    for _ in range(1200):
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("never happened: " + what)


class Board(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.folder.name, "runs")
        os.mkdir(cls.root)
        train(cls.root, "a", "--trace")
        train(cls.root, "b", "--workers", "2", "--world", "tcp", "--set", "optim.lr=0.05")
        cls.server = Server(cls.root)
        cls.busy_root = os.path.join(cls.folder.name, "busy")  # where runs come and go
        os.mkdir(cls.busy_root)
        cls.busy = Server(cls.busy_root)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        assert cls.busy.stop() == 0
        cls.folder.cleanup()

    def test_the_page_and_what_it_asks_for(self):
        answer, text = self.server.ask("/")
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.getheader("Content-Security-Policy").startswith("default-src 'self'"))
        self.assertIn("main.js", text)
        runs = self.server.get("/api/runs")["runs"]
        self.assertEqual([r["name"] for r in runs], ["a", "b"])
        self.assertEqual([r["name"] for r in self.server.get("/api/runs", q="optim.lr > 0.03")["runs"]], ["b"])
        run = self.server.get("/api/run", name="a")
        self.assertIn("[model]", run["recipe"])
        self.assertEqual(sum(map(sum, run["evaluation"]["confusion"])), 50)
        for what in ("weights", "gradient"): self.assertTrue(run["histograms"][0]["tensors"][0][what]["counts"])
        metrics = [json.loads(l) for l in pathlib.Path(self.root, "a/metrics.jsonl").read_text().splitlines()]
        curve = self.server.get("/api/curves", run="a", metric="train_loss")["curves"][0]
        self.assertEqual(curve["y"], [m["train_loss"] for m in metrics if "train_loss" in m])
        trace = self.server.get("/api/trace", run="a")
        self.assertIn("training", [r["label"] for r in trace["rows"]])
        self.assertTrue(self.server.get("/api/graph", run="a")["layers"])
        cluster = self.server.get("/api/run", name="b")["cluster"]
        self.assertEqual(len(cluster["ranks"]), 2)
        self.assertGreater(cluster["links"]["host_bytes_per_s"], 0)
        self.assertEqual([(p["from"], p["to"]) for p in cluster["pairs"]], [(0, 1)])
        self.assertGreater(cluster["pairs"][0]["bytes_per_s"], 0)
        sent = cluster["sent"]
        self.assertEqual([sent[0][0], sent[1][1]], [0, 0])
        self.assertGreater(min(sent[0][1], sent[1][0]), 0)

    def test_a_servers_bytes_go_through_it_and_waits_have_their_rank(self):
        # One server, on rank 0: the others send to it and not to each other, but for sums at evaluations. In a
        # simulation, so that how long everybody waits is not chance.
        summary = train(self.busy_root, "served", "--world", "sim", "--workers", "3", "--system", "easgd", "--trace", "--set", "train.epochs=4")
        folder = pathlib.Path(self.busy_root, "served")
        cluster = json.loads((folder / "cluster.json").read_text())
        self.assertEqual([r["host"] for r in cluster["ranks"]], [f"simulated host {i}" for i in range(3)])
        self.assertNotIn("links", cluster)
        sent = cluster["sent"]
        self.assertGreater(min(sent[1][0], sent[2][0], sent[0][1], sent[0][2]), max(sent[1][2], sent[2][1]))
        self.assertGreater(sum(map(sum, sent)), summary["bytes"])  # evaluations and agreements too
        self.assertGreater(summary["bytes"], 0)
        events = [e for e in json.loads((folder / "trace.json").read_text())["traceEvents"] if e["ph"] == "X" and e["tid"] == 0]
        for rank, times in enumerate(summary["ranks"]):
            exchanges = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["pid"] == rank and e["name"].startswith("exchange")]
            waits = [e for e in events if e["pid"] == rank and e["name"].startswith("waiting for rank")]
            for other, seconds in times["waiting_for_s"].items():
                of_it = sum(e["dur"] for e in waits if e["name"] == f"waiting for rank {other}") * 1e-6
                self.assertLessEqual(of_it, seconds * 1.01 + 1e-4)
            for e in waits:
                self.assertTrue(any(a - 1 <= e["ts"] and e["ts"] + e["dur"] <= b + 1 for a, b in exchanges), e)
        self.assertTrue([e for e in events if e["name"] == "waiting for rank 0"])
        # Every message of its steps is in the trace, with its length.
        traced, at, told = [[0] * 3 for _ in range(3)], 0, 0
        while True:
            answer = self.busy.get("/api/trace/messages", run="served", **{"from": at})
            fresh = answer["messages"] if not told else [m for m in answer["messages"] if m[0] > at]
            for when, sender, to, size, _ in fresh:
                self.assertGreaterEqual(when, at)
                traced[sender][to] += size
                at = when
            told += len(fresh)
            if not fresh: break
        self.assertEqual(told, answer["all"])
        for sender in range(3):
            for to in range(3): self.assertLessEqual(traced[sender][to], sent[sender][to])
        self.assertGreaterEqual(sum(map(sum, traced)), summary["bytes"])

    def test_the_rank_that_was_lost_is_named(self):
        for victim, name in ((2, "lost-2"), (0, "lost-0")):
            process = train(self.busy_root, name, "--world", "processes", "--workers", "3", "--set", "train.epochs=100000", wait=False)
            folder = pathlib.Path(self.busy_root, name)
            until(lambda: (folder / "metrics.jsonl").exists() and (folder / "metrics.jsonl").stat().st_size, "the run's first line")
            os.kill(json.loads((folder / "cluster.json").read_text())["ranks"][victim]["process"], signal.SIGKILL)
            process.communicate(timeout=120)
            failed = json.loads((folder / "cluster.json").read_text())["failed"]
            self.assertEqual(failed["rank"], victim)
            self.assertIn("signal 9", failed["reason"])

    def test_strangers_are_refused(self):
        ask, token = self.server.ask, {"Authorization": "Bearer " + self.server.token, "Content-Type": "application/json"}
        label = {"run": "a", "star": True}
        self.assertEqual(ask("/api/runs", host="evil.example")[0].status, 403)
        self.assertEqual(ask("/api/runs", headers={"Origin": "http://evil.example"})[0].status, 403)
        self.assertEqual(ask("/api/label", "POST", label, {"Content-Type": "application/json"})[0].status, 401)
        self.assertEqual(ask("/api/label", "POST", label, {**token, "Authorization": "Bearer " + "0" * 64})[0].status, 401)
        self.assertEqual(ask("/api/label", "POST", label, {**token, "Content-Type": "text/plain"})[0].status, 415)
        self.assertEqual(ask("/api/label", "POST", label, {**token, "Origin": "http://evil.example"})[0].status, 403)
        self.assertEqual(ask("/api/runs", "DELETE", headers=token)[0].status, 405)
        self.assertFalse(os.path.exists(os.path.join(self.root, "a/labels.json")))
        for path in ("/../../etc/passwd", "/api/run?name=../../etc", "/%2e%2e/%2e%2e/etc/passwd", "/api/run?name=%00", "/web/main.js"):
            answer, text = ask(path)
            self.assertEqual(answer.status, 404, path)
            self.assertNotIn("root:", text)
        answer, _ = ask("/api/label", "POST", "x" * 200_000, token)
        self.assertEqual(answer.status, 413)

    def test_hostile_bytes_end_a_connection_and_nothing_else(self):
        for text in (b"\0" * 100, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
                     b"POST /api/label HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 10_000 + b"\r\n" * 500):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as s:
                s.settimeout(20)
                try:
                    s.sendall(text)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
                except ConnectionError:
                    pass
        self.assertEqual(self.server.ask("/")[0].status, 200)

    def test_names_of_runs_are_text_and_never_markup(self):
        name = "<img src=x onerror=alert(1)>"
        train(self.busy_root, name)
        until(lambda: name in [r["name"] for r in self.busy.get("/api/runs")["runs"]], "the run appears")
        answer, _ = self.busy.ask("/api/runs")
        self.assertEqual(answer.getheader("Content-Type"), "application/json")
        self.assertEqual(answer.getheader("X-Content-Type-Options"), "nosniff")
        shutil.rmtree(os.path.join(self.busy_root, name))

    def test_what_a_request_lacks_is_said_in_words(self):
        for body, said in (({}, "'run'"), ([], "no JSON object"), ({"run": 1}, "the name of a run"), ({"run": "a", "star": "yes"}, "true or false"),
                           ({"run": "a", "add": "x"}, "a list of texts"), ("{", "byte")):
            answer, text = self.server.act("/api/label", body)
            self.assertEqual(answer.status, 400, text)
            self.assertIn(said, json.loads(text)["error"])
            self.assertNotIn("exception", text)

    def test_a_live_run_streams_pauses_saves_changes_its_rate_and_stops(self):
        get, act = self.busy.get, self.busy.act
        # A rate that does not change by itself.
        process = train(self.busy_root, "live", "--set", "train.epochs=100000", "--set", "schedule={name=\"constant\"}", "--workers", "2", "--world", "tcp", wait=False)
        try:
            until(lambda: any(r["name"] == "live" and r["values"].get("last_step", 0) > 2 for r in get("/api/runs")["runs"]), "the run appears")
            stream = urllib.request.urlopen(f"http://127.0.0.1:{self.busy.port}/api/events", timeout=60)
            told = until(lambda: (lambda line: line.startswith(b"data: ") and json.loads(line[6:]))(stream.readline()), "an event")
            self.assertIn("live", told["runs"])
            stream.close()
            self.assertIn('echelon_step{run="live"', self.busy.ask("/metrics")[1])
            live = lambda: get("/api/run", name="live")

            def control(action, **more):  # the step after which the run has done it
                until(lambda: act("/api/control", {"run": "live", "action": action, **more})[0].status == 200, action)
                done = lambda: [j["step"] for j in live()["journal"] if j["action"] == action]
                return until(done, "the run does " + action)[-1]

            paused = control("pause")
            until(lambda: f"paused after step {paused}" in live()["log"], "the run says that it pauses")
            self.assertLessEqual(live()["values"]["last_step"], paused)
            control("resume")
            until(lambda: live()["values"]["last_step"] > paused, "it goes on")
            changed = control("rate", value=0.25)
            def rates():
                points = [json.loads(l) for l in pathlib.Path(self.busy_root, "live/metrics.jsonl").read_text().splitlines(keepends=True) if l.endswith("\n")]
                return {p["step"]: p["lr"] for p in points if "lr" in p}
            until(lambda: max(rates()) > changed, "a step with the new rate")
            self.assertEqual({lr for step, lr in rates().items() if step <= changed}, {0.02})
            self.assertEqual({lr for step, lr in rates().items() if step > changed}, {0.005})
            control("checkpoint")
            control("stop")
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(json.loads(out.strip().splitlines()[-1])["stopped_by"], "request")
            until(lambda: live()["values"]["state"] == "request", "the table says that it was asked to stop")
            self.assertEqual(act("/api/control", {"run": "live", "action": "pause"})[0].status, 400)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
            shutil.rmtree(os.path.join(self.busy_root, "live"), ignore_errors=True)

    def test_leaving_this_machine_needs_a_token_and_a_certificate(self):
        done = subprocess.run([PROGRAM, "board", "--root", self.root, "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--token-file", done.stderr)
        secret = os.path.join(self.folder.name, "s")
        subprocess.run([PROGRAM, "secret", secret], check=True, capture_output=True)
        done = subprocess.run([PROGRAM, "board", "--root", self.root, "--host", "0.0.0.0", "--port", "0", "--token-file", secret], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--certificate", done.stderr)
        self.assertIn("ssh -L", done.stderr)

    def test_other_programs_leave_it_the_registry(self):
        # SQLite's last user removes the log; whoever thinks it is the last while the board lives takes the file from under it.
        subprocess.run([PROGRAM, "runs", "find", "", "--root", self.root], check=True, capture_output=True, timeout=60)
        self.assertTrue(os.path.exists(os.path.join(self.root, "registry.db-wal")))
        self.assertEqual([r["name"] for r in self.server.get("/api/runs")["runs"]], ["a", "b"])

    def test_a_taken_port_is_said(self):
        done = subprocess.run([PROGRAM, "board", "--root", self.root, "--port", str(self.server.port)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--port", done.stderr)

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus here: tools/setup browser installs it")
    def test_prometheus_scrapes_it(self):
        process = train(self.busy_root, "scraped", "--set", "train.epochs=100000", wait=False)
        home = tempfile.TemporaryDirectory()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        config = pathlib.Path(home.name, "prometheus.yml")
        config.write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: echelon\n  static_configs:\n  - targets: ['127.0.0.1:{self.busy.port}']\n")
        scraper = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={home.name}/data", f"--web.listen-address=127.0.0.1:{port}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def answer():
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query=echelon_step", timeout=10) as r:
                        return json.loads(r.read())["data"]["result"]
                except OSError:
                    return []
            result = until(answer, "Prometheus has scraped a live run")
            self.assertEqual(result[0]["metric"]["run"], "scraped")
            self.assertGreater(float(result[0]["value"][1]), 0)
        finally:
            for p in (scraper, process):
                p.kill()
                p.communicate() if p is process else p.wait()
            home.cleanup()
            shutil.rmtree(os.path.join(self.busy_root, "scraped"), ignore_errors=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
