#pragma once
// Between Python's values and the library's: dictionaries and option tables, arrays and data sets, JSON. All functions
// are called with Python's global lock held.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "base/options.h"
#include "data/array.h"
#include "data/decorators.h"

namespace echelon::python {

namespace py = pybind11;

// A recipe or one of its tables. `where` is the table's name for messages. Python's TypeError, with the place, for a
// value that no option has.
Options options_from(const py::dict& dict, const std::string& where = "");

py::object from_json(const std::string& text);

// The array where it lies: nothing is copied, and it is kept for as long as it is read. The numbers of one sample must
// lie side by side; `name` is for messages. Python's TypeError otherwise.
data::Array array_from(const py::array& array, const std::string& name);

// A Python object with __len__ and __getitem__ as a data set: each sample is what it returns, an array or a pair of
// arrays, as `fields` say. Its methods are called with the lock held, by any thread.
data::DatasetPtr dataset_from(const py::object& object, data::DatasetInfo info);

// A sample as Python sees it: a tuple of arrays.
py::tuple sample_of(const data::Dataset& dataset, std::uint64_t index);

}  // namespace echelon::python
