#pragma once
// The models by name. To add one, write its file and add a row to the table in zoo.cpp.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/options.h"
#include "models/model.h"

namespace echelon::models {

struct Entry {
  std::string_view name;
  std::string_view help;        // one line: what it is, who described it
  std::string_view keys;        // what may be set, with defaults
  InputSpec (*usual_inputs)();  // what it is usually trained on, for when no data set says otherwise
  std::unique_ptr<Model> (*make)(OptionReader&, const InputSpec&);
};
std::span<const Entry> zoo();

// The model called `name`, with the options of its table (the key `name` in it is skipped; models/wrappers/quantised.h
// reads the table `quantise`, which any model may have). Every problem (unknown name or key, value out of bounds,
// shapes that do not fit the data) is added to the reader's problems; null if there is any.
std::unique_ptr<Model> make_model(const std::string& name, OptionReader& options, const InputSpec& inputs);
// The same outside a recipe, for programs, tests and benchmarks; BadInput if anything is wrong.
std::unique_ptr<Model> make_model(const std::string& name, const InputSpec& inputs, const Options& options = {});

// The table's row; BadInput (with the nearest name) if there is none.
const Entry& find_model(const std::string& name);

}  // namespace echelon::models
