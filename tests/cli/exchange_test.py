"""Models in and out as a user does it: export, import, train on; and a served model over HTTP."""
import concurrent.futures, csv, json, os, pathlib, signal, subprocess, sys, tempfile, unittest, urllib.error, urllib.request

import numpy

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECIPE = os.path.join(SOURCE, "recipes/demo.toml")
QUICK = ["--set", "data.limit=200", "--set", "data.limit_test=50", "--set", "train.epochs=1"]


def run(*words, ok=True, cwd=SOURCE):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)
    if ok:
        assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def result(*words, **more):
    return json.loads(run(*words, "--json", **more).stdout.strip().splitlines()[-1])


class WithRun(unittest.TestCase):
    more = ["--set", "data.transform=[]"]

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.run_dir = os.path.join(cls.folder, "digits")
        run("train", RECIPE, *QUICK, *cls.more, "--run", cls.run_dir)
        cls.x = numpy.random.default_rng(1).random((3, 1, 28, 28), dtype=numpy.float32)
        for i in range(3): numpy.save(cls.path(f"x{i}.npy"), cls.x[i:i + 1])

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def predicted(self, run_dir, i):
        run("predict", run_dir, self.path(f"x{i}.npy"), "-o", self.path("said.npy"))
        return numpy.load(self.path("said.npy"))


class Exchange(WithRun):
    def test_a_network_that_goes_out_and_comes_back_says_the_same_and_trains_on(self):
        about = result("export", self.run_dir, self.path("digits.onnx"))
        self.assertEqual(about["opset"], 17)
        self.assertEqual(about["inputs"], [{"name": "image", "shape": ["batch", 1, 28, 28], "datatype": "FP32"}])
        back = result("import", self.path("digits.onnx"), self.path("back"), "--data", "digits")
        self.assertEqual(back["recipe"], self.path("back.toml"))
        again = run("import", self.path("digits.onnx"), self.path("back"), ok=False)
        self.assertEqual(again.returncode, 2)
        self.assertIn("back.toml is there already", again.stderr)
        run("train", self.path("back.toml"), "--set", "data.limit=64", "--set", "train.epochs=1", "--set", "optim.lr=1e-9",
            "--run", self.path("back-run"))
        numpy.testing.assert_allclose(self.predicted(self.path("back-run"), 0), self.predicted(self.run_dir, 0), atol=1e-5)

    def test_weights_go_out_under_pytorchs_names_and_come_back(self):
        about = result("export", self.run_dir, self.path("w.safetensors"), "--names", "torch")
        self.assertEqual(about["names"], "torch")
        back = result("import", self.path("w.safetensors"), self.path("w2.safetensors"), "--names", "torch", "--recipe", RECIPE)
        self.assertEqual(back["tensors"], about["tensors"])

    def test_what_cannot_be_is_refused_and_nothing_is_written(self):
        pathlib.Path(self.path("bad.onnx")).write_bytes(b"no protocol buffer")
        before = sorted(os.listdir(self.folder))
        for words, said in ((("import", self.path("bad.onnx"), self.path("bad")), "bad.onnx"),
                            (("import", self.path("bad.txt"), self.path("bad")), ".onnx"),
                            (("export", self.run_dir, self.path("bad.pt")), ".onnx or .safetensors"),
                            (("export", self.run_dir, self.path("bad2.onnx"), "--names", "torch"), "--names"),
                            (("export", self.run_dir, self.path("none/bad.onnx")), "mkdir -p"),
                            (("export", self.run_dir, self.path("none/bad.safetensors")), "mkdir -p"),
                            (("import", self.path("bad.onnx"), self.path("bad"), "--data", "digitz"), "did you mean 'digits'?"),
                            (("serve", f"digits={self.run_dir}", "--host", "0.0.0.0"), "--token-file"),
                            (("serve", f"digits:x={self.run_dir}"), "version")):
            done = run(*words, ok=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)


class Serve(WithRun):
    more = []  # the recipe normalises: what is asked is what predict reads, not what the network sees

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run("init", os.path.join(SOURCE, "share/examples/houses.csv"), "-o", cls.path("houses.toml"))
        run("train", cls.path("houses.toml"), "--set", "train.epochs=1", "--run", cls.path("houses"), cwd=cls.folder)
        pathlib.Path(cls.path("token")).write_text("a-token-of-many-characters\n")
        cls.server = subprocess.Popen([PROGRAM, "serve", f"digits={cls.run_dir}", f"digits:2={cls.run_dir}",
                                       "houses=" + cls.path("houses"), "--port", "0", "--json", "--batch", "16", "--body", "1",
                                       "--token-file", cls.path("token")],
                                      stdout=subprocess.PIPE, text=True)
        cls.port = json.loads(cls.server.stdout.readline())["port"]

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGTERM)
        assert cls.server.wait() == 0
        cls.server.stdout.close()
        super().tearDownClass()

    def ask(self, path, body=None, token="a-token-of-many-characters", headers={}):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body,
                                         headers={"Authorization": "Bearer " + token, **headers})
        try:
            with urllib.request.urlopen(request) as answer: return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as e:
            with e: return e.code, e.headers, e.read()

    def test_health_and_metadata(self):
        self.assertEqual(self.ask("/v2/health/ready")[0], 200)
        about = json.loads(self.ask("/v2/models/digits")[2])
        self.assertEqual(about["versions"], ["1", "2"])
        self.assertEqual(about["inputs"], [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 28, 28]}])
        self.assertEqual(self.ask("/v2/models/digits/versions/2/ready")[0], 200)
        self.assertEqual(self.ask("/v2/models/other")[0], 404)
        self.assertEqual(self.ask("/v2", token="wrong")[0], 401)

    def test_answers_have_the_bits_of_predict_as_numbers_and_as_bytes(self):
        for i in range(3):
            want = self.predicted(self.run_dir, i).astype(numpy.float32)
            body = json.dumps({"inputs": [{"name": "image", "shape": [1, 1, 28, 28], "datatype": "FP32",
                                           "data": [float(v) for v in self.x[i].flatten()]}],
                               "outputs": [{"name": "probabilities"}]}).encode()
            status, _, text = self.ask("/v2/models/digits/infer", body)
            self.assertEqual(status, 200, text)
            said = numpy.array(json.loads(text)["outputs"][0]["data"], dtype=numpy.float32).reshape(1, 10)
            numpy.testing.assert_array_equal(said, want)
            head = json.dumps({"inputs": [{"name": "image", "shape": [1, 1, 28, 28], "datatype": "FP32",
                                           "parameters": {"binary_data_size": 784 * 4}}],
                               "outputs": [{"name": "probabilities", "parameters": {"binary_data": True}}]}).encode()
            status, headers, answer = self.ask("/v2/models/digits/versions/1/infer", head + self.x[i].tobytes(), headers={
                "Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"})
            self.assertEqual(status, 200, answer)
            numbers = answer[int(headers["Inference-Header-Content-Length"]):]
            numpy.testing.assert_array_equal(numpy.frombuffer(numbers, dtype=numpy.float32).reshape(1, 10), want)

    def test_samples_that_are_run_together_have_the_bits_of_predict_for_each_alone(self):
        want = [self.predicted(self.run_dir, i).astype(numpy.float32) for i in range(3)]

        def ask(order):
            head = json.dumps({"inputs": [{"name": "image", "shape": [len(order), 1, 28, 28], "datatype": "FP32",
                                           "parameters": {"binary_data_size": 784 * 4 * len(order)}}],
                               "outputs": [{"name": "probabilities"}]}).encode()
            status, _, text = self.ask("/v2/models/digits/infer", head + self.x[order].tobytes(), headers={
                "Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"})
            assert status == 200, text
            return numpy.array(json.loads(text)["outputs"][0]["data"], dtype=numpy.float32).reshape(-1, 10)

        orders = [[0], [1, 2], [2, 0, 1], [1], [0] * 9, [2, 1]] * 3
        with concurrent.futures.ThreadPoolExecutor(len(orders)) as pool:
            for order, said in zip(orders, pool.map(ask, orders)):
                numpy.testing.assert_array_equal(said, numpy.concatenate([want[i] for i in order]))

    def test_a_tables_columns_are_the_inputs_and_answers_have_its_units(self):
        new = os.path.join(SOURCE, "share/examples/new-houses.csv")
        with open(new) as f: rows = list(csv.DictReader(f))
        run("predict", self.path("houses"), new, "-o", self.path("prices.npy"))
        about = json.loads(self.ask("/v2/models/houses")[2])
        inputs = [{"name": i["name"], "datatype": "BYTES", "shape": [len(rows)], "data": [r[i["name"]] for r in rows]} for i in about["inputs"]]
        status, _, text = self.ask("/v2/models/houses/infer", json.dumps({"inputs": inputs}).encode())
        self.assertEqual(status, 200, text)
        said = numpy.array(json.loads(text)["outputs"][0]["data"], dtype=numpy.float32)
        numpy.testing.assert_array_equal(said, numpy.load(self.path("prices.npy")).reshape(-1))

    def test_bad_requests_are_refused_with_the_reason(self):
        tensor = {"name": "image", "shape": [1, 1, 28, 28], "datatype": "FP32"}
        for bad, said in (("1e39", "not finite"), ("1e999", "number")):
            body = json.dumps({"inputs": [{**tensor, "data": [0] * 783 + ["BAD"]}]}).replace('"BAD"', bad).encode()
            status, _, text = self.ask("/v2/models/digits/infer", body)
            self.assertEqual(status, 400, text)
            self.assertIn(said, json.loads(text)["error"])
        status, _, text = self.ask("/v2/models/digits/infer", b"{}")
        self.assertEqual(status, 400)
        self.assertIn("inputs", json.loads(text)["error"])
        self.assertEqual(self.ask("/v2/models/digits/infer", b" " * (2 << 20))[0], 413)

    def test_metrics_have_latencies(self):
        text = self.ask("/metrics")[2].decode()
        for part in ("echelon_request_seconds{model=\"digits\",version=\"1\",quantile=\"0.99\"}", "# TYPE echelon_waiting gauge"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
