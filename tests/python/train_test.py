"""Training from Python: the program's bits, callbacks, signals, errors, several processes."""
from support import *

import signal, threading, time, types
from unittest import mock


class Train(InFolder):
    def test_the_weights_are_those_of_the_program(self):
        theirs = program("train", DEMO, "--run", str(self.folder / "program"),
                         *(f for k, v in QUICK.items() for f in ("--set", f"{k}={v}")))
        ours = echelon.train(DEMO, set=QUICK, run="python")
        self.assertEqual(ours.summary["weights_sha256"], theirs["weights_sha256"])
        self.assertEqual(ours.summary["test_accuracy"], theirs["test_accuracy"])
        table = {"model": {"name": "lenet5"},
                 "data": {"kind": "digits", "limit": 300, "limit_test": 100,
                          "transform": [{"kind": "shift", "most": 2},
                                        {"kind": "normalise", "mean": 0.1307, "std": 0.3081}]},
                 "optim": {"name": "momentum", "lr": 0.02, "momentum": 0.9, "weight_decay": 5e-4},
                 "schedule": {"name": "cosine", "warmup_epochs": 1}, "train": {"epochs": 2, "batch": 64, "seed": 1}}
        self.assertEqual(echelon.train(table).summary["weights_sha256"], theirs["weights_sha256"])
        for several in ({"workers": 2}, {"workers": 2, "world": "threads"}):
            self.assertEqual(echelon.train(table, **several).summary["weights_sha256"], theirs["weights_sha256"])

    def test_several_threads_train_at_once(self):
        runs = []
        def train():
            runs.append(echelon.train(recipe(), blobs(), test=blobs(60, 1)))
        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({run.path for run in runs}), 3)
        self.assertEqual(len({run.summary["weights_sha256"] for run in runs}), 1)

    def test_metrics_are_a_data_frame_with_a_row_for_each_line(self):
        run = echelon.train(recipe(), blobs(), test=blobs(60, 1))
        lines = (run.path / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(len(run.points), len(lines))
        import pandas  # tools/setup build installs it
        self.assertIsInstance(run.metrics, pandas.DataFrame)
        self.assertEqual(len(run.metrics), len(lines))
        self.assertEqual(run.metrics["test_accuracy"].dropna().iloc[-1], run.summary["test_accuracy"])

    def test_without_pandas_the_error_names_the_package(self):
        run = echelon.train(recipe(train={"steps": 2, "batch": 20}), blobs())
        hidden, sys.modules["pandas"] = sys.modules.get("pandas"), None
        try:
            with self.assertRaisesRegex(ImportError, "python3-pandas"):
                run.metrics
        finally:
            del sys.modules["pandas"]
            if hidden:
                sys.modules["pandas"] = hidden

    def test_callbacks_hear_of_steps_and_evaluations_in_the_calling_process(self):
        for workers in (1, 2):
            steps, parts = [], []

            class Listen(echelon.Callback):
                def on_step(self, event):
                    steps.append((event["step"], os.getpid()))

                def on_evaluation(self, event):
                    parts.append((event["part"], sorted(event["metrics"])))

            echelon.train(recipe(), blobs(), test=blobs(60, 1), callbacks=[Listen()], workers=workers)
            self.assertEqual(steps, [(n, os.getpid()) for n in range(1, 31)])
            self.assertEqual(parts, [("test", ["test_accuracy", "test_loss"])] * 5)

    def test_a_callback_can_stop_and_the_run_goes_on_to_the_same_weights(self):
        whole = echelon.train(recipe(), blobs()).summary["weights_sha256"]

        def stop(event):
            if event["step"] == 7:
                raise echelon.StopTraining

        for workers in (1, 2):
            name = f"stopped-{workers}"
            run = echelon.train(recipe(), blobs(), callbacks=[stop], run=name, workers=workers)
            self.assertGreaterEqual(run.summary["steps"], 7)
            if workers == 1:  # a signal to other processes may come when all is done
                self.assertLess(run.summary["steps"], 30)
            run = echelon.train(recipe(), blobs(), run=name, resume=True)
            self.assertEqual(run.summary["weights_sha256"], whole)

    def test_what_a_callback_raises_comes_out_of_train(self):
        def fails(event):
            raise KeyError("mine")

        for workers in (1, 2):
            with self.assertRaisesRegex(KeyError, "mine"):
                echelon.train(recipe(), blobs(), callbacks=[fails], workers=workers)

    def test_metrics_written_in_python_see_every_prediction_and_target(self):
        x, y = blobs(60, 1)
        seen = []

        def share_right(predictions, targets):
            seen.append((predictions.shape, targets.tolist()))
            return float(np.mean(predictions.argmax(1) == targets))

        run = echelon.train(recipe(), blobs(), test=(x, y), metrics={"share_right": share_right})
        self.assertEqual(seen, [((60, 3), y.tolist())] * 5)
        self.assertAlmostEqual(run.summary["test_share_right"], run.summary["test_accuracy"], places=12)
        self.assertEqual([p["test_share_right"] for p in run.points if "test_share_right" in p][-1],
                         run.summary["test_share_right"])
        run = echelon.train(recipe(), blobs(), test=(x, y), metrics={"share_right": share_right}, workers=2)
        self.assertAlmostEqual(run.summary["test_share_right"], run.summary["test_accuracy"], places=12)

    def test_bad_input_names_every_problem_and_leaves_nothing(self):
        wrong = recipe(optim={"name": "adam", "lrr": 1}, train={"epochs": 2, "batch": -1})
        with self.assertRaises(echelon.BadInput) as caught:
            echelon.train(wrong, blobs())
        self.assertEqual(len(caught.exception.problems), 2, caught.exception)
        self.assertIn("optim.lrr", str(caught.exception))
        self.assertIn("train.batch", str(caught.exception))
        self.assertFalse((self.folder / "runs").exists())
        with self.assertRaises(echelon.BadInput):
            echelon.train(wrong, blobs(), workers=2)
        with self.assertRaisesRegex(TypeError, "optim.lr: a set is no setting"):
            echelon.train(recipe(optim={"name": "adam", "lr": {1}}), blobs())

    def test_bad_arguments_are_refused_before_anything_is_written(self):
        table = {"cores": (0, -1, 1.5, True, 2000), "workers": (0, -1, 1.5, True, 200000), "world": ("mars", "alone")}
        for name, values in table.items():
            for value in values:
                with self.assertRaisesRegex(echelon.BadInput, f"{name}: takes .*, not {value!r}"):
                    echelon.train(recipe(), blobs(), **{"workers": 2, name: value})
        for wrong in ({"callbacks": [3]}, {"metrics": {"mine": 3}}):
            with self.assertRaisesRegex(TypeError, "3"):
                echelon.train(recipe(), blobs(), **wrong)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_metric_that_returns_no_number_is_named(self):
        for workers in (1, 2):
            with self.assertRaisesRegex((TypeError, echelon.Failure), "'mine' returned 'much'"):
                echelon.train(recipe(), blobs(), test=blobs(60, 1), workers=workers, metrics={"mine": lambda p, t: "much"})

    def test_predict_refuses_what_is_empty_or_not_finite(self):
        x, y = blobs()
        run = echelon.train(recipe(train={"steps": 2, "batch": 20}), (x, y))
        bad = x.copy()
        bad[3, 1] = np.nan
        with self.assertRaisesRegex(echelon.BadInput, "row 3, column 1 .* is nan"):
            run.predict(bad)
        with self.assertRaisesRegex(echelon.BadInput, "empty"):
            run.predict(x[:0])
        self.assertEqual(run.predict(x).shape, (len(x), 3))

    def test_ctrl_c_saves_and_raises_keyboard_interrupt(self):
        whole = echelon.train(recipe(), blobs()).summary["weights_sha256"]
        for workers in (1, 2):
            name = f"interrupted-{workers}"

            def interrupt(event):
                if event["step"] == 5:
                    os.kill(os.getpid(), signal.SIGINT)

            with self.assertRaises(KeyboardInterrupt):
                echelon.train(recipe(), blobs(), callbacks=[interrupt], run=name, workers=workers)
            self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
            run = echelon.train(recipe(), blobs(), run=name, resume=True)
            self.assertEqual(run.summary["weights_sha256"], whole)

    def test_other_python_threads_run_while_it_trains(self):
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        echelon.train(recipe(train={"epochs": 60, "batch": 20}), blobs(600))
        during = counted[0] - before
        done.set()
        thread.join()
        self.assertGreater(during, 0)

    def test_a_notebook_shows_one_block_that_is_replaced(self):
        made, updates = [], []

        class ZMQInteractiveShell:  # as the shell of a notebook's kernel is called
            pass

        def display(block, display_id):
            made.append(block)
            return types.SimpleNamespace(update=updates.append)

        notebook = {"IPython": types.SimpleNamespace(get_ipython=ZMQInteractiveShell),
                    "IPython.display": types.SimpleNamespace(display=display)}
        with mock.patch.dict(sys.modules, notebook):
            echelon.train(recipe(), blobs(), test=blobs(60, 1))
        self.assertEqual(len(made), 1)
        self.assertTrue(any("█" in u.text and "loss" in u.text for u in updates), [u.text for u in updates])
        self.assertEqual(updates[-1].text.count("test_accuracy"), 5)  # evaluations stay, the bar is gone
        self.assertNotIn("█", updates[-1].text)
        self.assertTrue(updates[-1]._repr_html_().startswith("<pre>"))

    def test_check_says_what_would_be_trained(self):
        checked = echelon.check(recipe(), blobs())
        self.assertIn("[optim]", checked["recipe"])
        self.assertEqual(checked["model"]["weights"], 3 * 8 + 8 + 8 * 3 + 3)
        self.assertFalse((self.folder / "runs").exists())
        self.assertIn("easgd", echelon.systems())


if __name__ == "__main__":
    unittest.main()
