"""Arrays, tensors and Python objects as data, networks in Python, and predictions."""
from support import *

import ast

from echelon import nn


class Squares:
    """Computed samples: is the first number greater than the second?"""
    classes = 2

    def __init__(self, size):
        self.size = size
        self.asked = 0

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        self.asked += 1
        random = np.random.default_rng(i)
        x = random.normal(size=4).astype(np.float32)
        return x, int(x[0] > x[1])


class Data(InFolder):
    def test_arrays_are_read_where_they_lie(self):
        x, y = blobs()
        data = echelon.dataset((x, y))
        x[3] = [7, 8, 9]
        y[3] = 2
        sample, label = data[3]
        self.assertEqual(sample.tolist(), [7, 8, 9])
        self.assertEqual(int(label), 2)
        every_second = echelon.dataset((x[::2], y[::2]))
        x[4] = [1, 2, 3]
        self.assertEqual(every_second[2][0].tolist(), [1, 2, 3])
        self.assertEqual(len(every_second), 60)

    def test_arrays_are_kept_while_they_are_used(self):
        import gc, weakref
        x, y = blobs()
        watched = weakref.ref(x)
        data = echelon.dataset((x, y))
        del x, y
        gc.collect()
        self.assertIsNotNone(watched())
        data[0]
        del data
        gc.collect()
        self.assertIsNone(watched())

    def test_tensors_share_their_memory(self):
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        x, y = (torch.from_numpy(a.copy()) for a in blobs())
        data = echelon.dataset((x, y))
        x[0, 0] = 42
        self.assertEqual(data[0][0][0], 42)

    def test_every_type_of_number(self):
        x, y = blobs()
        for dtype in ("float32", "float64", "float16", "int8", "int64", ">f4"):
            data = echelon.dataset((x.astype(dtype), y))
            np.testing.assert_allclose(data[5][0], x.astype(dtype)[5].astype(np.float32), rtol=1e-6)
        pictures = echelon.dataset((np.full((2, 4, 4), 255, np.uint8), np.array([0, 1])))
        self.assertEqual(pictures.fields[0], "image f32 [1, 4, 4]")
        self.assertEqual(pictures[0][0].max(), 1.0)
        with self.assertRaisesRegex(TypeError, "holds no numbers"):
            echelon.dataset((np.array(["a"]), np.array([0])))
        with self.assertRaisesRegex(echelon.BadInput, "120 samples.*119 labels"):
            echelon.dataset((x, y[:-1]))

    def test_layouts_that_cannot_be_read_in_place_are_copied_right(self):
        x, y = blobs()
        for view in (x[:, ::-1], np.asfortranarray(x), x[::-1]):
            np.testing.assert_array_equal(echelon.dataset((view, y))[7][0], view[7])

    def test_numbers_as_targets_are_a_regression(self):
        random = np.random.default_rng(0)
        x = random.normal(size=(200, 3)).astype(np.float32)
        y = (x @ np.array([1, -2, 0.5])).astype(np.float32)
        run = echelon.train(recipe(train={"epochs": 40, "batch": 20}), (x, y), test=(x, y))
        answers = run.predict(x)
        self.assertEqual(answers.shape, (200, 1))
        self.assertLess(np.mean((answers[:, 0] - y) ** 2), 0.1)

    def test_a_data_set_written_in_python(self):
        data = Squares(100)
        run = echelon.train(recipe(), data, test=Squares(30))
        self.assertGreaterEqual(data.asked, 500)  # five epochs
        arrays = [np.stack([data[i][0] for i in range(100)]), np.array([data[i][1] for i in range(100)])]
        same = echelon.train(recipe(), tuple(arrays))
        self.assertEqual(run.summary["weights_sha256"], same.summary["weights_sha256"])
        several = echelon.train(recipe(), Squares(100), test=Squares(30), workers=2)
        self.assertEqual(run.summary["weights_sha256"], several.summary["weights_sha256"])

    def test_what_a_data_set_raises_comes_out_of_train(self):
        class Broken(Squares):
            def __getitem__(self, i):
                if self.asked > 150:
                    raise LookupError("no more")
                return super().__getitem__(i)

        with self.assertRaisesRegex(LookupError, "no more"):
            echelon.train(recipe(), Broken(100))

    def test_validation_as_samples_or_as_a_share(self):
        for given in ({"validation": blobs(30, 1)}, {}):
            table = recipe() if given else recipe(data={"validation": 0.2})
            run = echelon.train(table, blobs(), **given)
            self.assertIn("val_accuracy", run.summary)

    def test_a_run_predicts_later_without_its_data(self):
        x, y = blobs()
        run = echelon.train(recipe(data={"validation": 0.2}), (x, y), run="first")
        said = run.predict(x)
        self.assertEqual(said.shape, (120, 3))
        np.testing.assert_allclose(said.sum(1), 1, rtol=1e-5)
        self.assertGreater(np.mean(said.argmax(1) == y), 0.9)
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import numpy as np, echelon; "
                  "np.save('said.npy', echelon.load('first').predict(np.load('x.npy')))")
        np.save("x.npy", x)
        subprocess.run([sys.executable, "-c", script, PACKAGE], check=True)
        np.testing.assert_array_equal(np.load("said.npy"), said)
        subprocess.run([PROGRAM, "predict", "first", "x.npy", "-o", "program.npy"], check=True, capture_output=True)
        np.testing.assert_array_equal(np.load("program.npy"), said)
        with self.assertRaisesRegex(echelon.BadInput, "this network reads"):
            run.predict(np.zeros((2, 5), np.float32))

    def test_weights_are_views_that_cannot_be_written(self):
        run = echelon.train(recipe(), blobs())
        weights = run.weights
        self.assertEqual(sorted(w.shape for w in weights.values()), [(3,), (3, 8), (8,), (8, 3)])
        with self.assertRaises(ValueError):
            next(iter(weights.values()))[...] = 0


class Networks(InFolder):
    def test_a_sequence_of_layers_is_the_network_of_a_recipe(self):
        layers = [{"type": "linear", "out": 8}, {"type": "relu"}, {"type": "linear", "out": 3}]
        written = echelon.train(recipe(model={"name": "layers", "layers": layers}), blobs())
        net = nn.sequential(nn.linear(8), nn.relu(), nn.linear(3))
        built = echelon.train(recipe(model=net), blobs())
        for a, b in zip(written.weights.values(), built.weights.values()):
            np.testing.assert_array_equal(a, b)

    def test_a_graph_with_a_branch(self):
        x = nn.input()
        a = nn.relu()(nn.linear(8)(x))
        net = nn.Network(nn.linear(3, name="scores")(nn.linear(8)(a) + a))
        self.assertEqual([layer["type"] for layer in net.table()["layers"]],
                         ["linear", "relu", "linear", "add", "linear"])
        model = echelon.check(recipe(model=net), blobs())["model"]
        self.assertEqual(model["weights"], 3 * 8 + 8 + 8 * 8 + 8 + 8 * 3 + 3)

    def test_mistakes_are_named(self):
        with self.assertRaisesRegex(TypeError, "nn.add reads 2 or more"):
            nn.add()(nn.input())
        with self.assertRaisesRegex(echelon.BadInput, "outt"):
            echelon.train(recipe(model=nn.sequential(nn.linear(outt=3))), blobs())

    def test_the_stubs_name_every_layer_and_setting(self):
        text = (Path(SOURCE) / "python/echelon/nn.pyi").read_text()
        ast.parse(text)
        for kind, keys, _, _ in echelon._core.layer_kinds():
            line = next((l for l in text.splitlines() if l.startswith(f"def {kind}(")), "")
            for key in nn._keys_of(keys):
                self.assertIn(f"{key}: ", line, f"{kind}: run tools/python_stubs build/python")


if __name__ == "__main__":
    unittest.main()
