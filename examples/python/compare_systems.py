"""Compare ways to train on four workers: loss against time and bytes, on a simulated cluster.

    python3 examples/python/compare_systems.py [STEPS]
"""
import sys

import echelon

recipe = {
    "model": {"name": "mlp", "hidden": [64]},
    "data": {"kind": "digits"},
    "optim": {"name": "momentum", "lr": 0.05},
    "train": {"steps": int(sys.argv[1]) if len(sys.argv) > 1 else 300, "batch": 64},
}
print(f"{'system':12} {'loss':>8} {'accuracy':>9} {'MB sent':>8}")
for system in ("bsp", "easgd", "sparknet", "gosgd"):
    run = echelon.train(recipe, system=system, workers=4, world="sim", name=system, progress=False)
    s = run.summary
    print(f"{system:12} {s['test_loss']:8.4f} {100 * s['test_accuracy']:7.1f} % {s.get('bytes', 0) / 1e6:8.2f}")
