#pragma once
// What a network says of samples, and what it should have said, as arrays. Called with Python's global lock held, which
// they release while they compute. Messages: BadInput.

#include <pybind11/numpy.h>

#include <span>

#include "data/decorators.h"
#include "graph/program.h"
#include "models/model.h"
#include "world/os/cores.h"

namespace echelon::python {

namespace py = pybind11;

// Probabilities where the model has classes, else its output: [samples, width].
py::array_t<float> answers(const models::Model& model, const ParameterTable& table, std::span<float> weights,
                           const data::DatasetPtr& data, Cores& cores);

// What the samples should have been answered with: [samples, ...], in the data's order.
py::array targets(const data::DatasetPtr& data);

}  // namespace echelon::python
