#pragma once
// Training and checking a recipe for Python. `settings` is the dictionary that python/echelon/training.py makes. Called
// with Python's global lock held, which they release while they compute.

#include <pybind11/pybind11.h>

namespace echelon::python {

namespace py = pybind11;

// `tell(kind, event)` hears what happens, of steps at most ten in a second unless `every_step`; if it returns True, the
// run saves and stops. `metrics`: functions of (predictions, targets) by name.
void train(const py::dict& settings, const py::function& tell, bool every_step, const py::dict& metrics);

// The recipe as it would be run, and what models::describe() says of its network, from JSON. BadInput with everything
// that is wrong with it.
py::tuple check(const py::dict& settings);

}  // namespace echelon::python
