#include "answers.h"

#include <cstring>

#include "base/error.h"
#include "parallel/step/predictor.h"

namespace echelon::python {

py::array_t<float> answers(const models::Model& model, const ParameterTable& table, std::span<float> weights,
                           const data::DatasetPtr& data, Cores& cores) {
  const models::Task task = model.task();
  if (task == models::Task::language || task == models::Task::generate)
    bad_input("a model of the kind '{}' has no answer to a sample: use `echelon sample`", models::name_of(task));
  const bool shares = task == models::Task::classify || task == models::Task::multi_label;
  std::vector<float> numbers;
  std::int64_t width = 0;
  {
    const py::gil_scoped_release others_run;
    Predictor predictor(model, table, weights, data, shares ? "probabilities" : "output", cores);
    width = predictor.width();
    numbers.resize(data->size() * static_cast<std::size_t>(width));
    predictor.run(
        [&](int, const Predictor::Answers& a) {
          std::ranges::copy(a.numbers,
                            numbers.begin() + static_cast<std::ptrdiff_t>(a.first * static_cast<std::uint64_t>(width)));
        },
        [](std::uint64_t) {});
  }
  py::array_t<float> out({static_cast<py::ssize_t>(data->size()), static_cast<py::ssize_t>(width)});
  std::ranges::copy(numbers, out.mutable_data());
  return out;
}

py::array targets(const data::DatasetPtr& data) {
  const std::size_t field = data->info().inputs;
  if (field >= data->fields().size()) return py::array_t<float>(0);
  const data::Field& f = data->fields()[field];
  std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(data->size())};
  shape.insert(shape.end(), f.shape.dims().begin(), f.shape.dims().end());
  py::array out =
      f.dtype == DType::i32 ? py::array(py::array_t<std::int32_t>(shape)) : py::array(py::array_t<float>(shape));
  auto* to = static_cast<std::byte*>(out.mutable_data());
  const py::gil_scoped_release others_run;
  if (data::has_labels(data->info())) {
    for (std::uint64_t i = 0; i < data->size(); ++i) reinterpret_cast<std::int32_t*>(to)[i] = data->label(i);
  } else {
    data::Sample sample(data->fields());
    for (std::uint64_t i = 0; i < data->size(); ++i) {
      data->get(i, {}, sample.ref());
      std::memcpy(to + i * f.bytes(), sample.ref()[field], f.bytes());
    }
  }
  return out;
}

}  // namespace echelon::python
