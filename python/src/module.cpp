// The compiled half of the package `echelon`: what Python needs of the library, and nothing that Python can do itself
// (python/echelon has the other half). Python's global lock is released wherever the library computes.

#include <pybind11/stl.h>

#include "answers.h"
#include "base/error.h"
#include "cli/answers/loaded_run.h"
#include "cli/answers/predict_inputs.h"
#include "convert.h"
#include "data/memory.h"
#include "nn/layer_table.h"
#include "recipe/system_file.h"
#include "recipe/toml.h"
#include "run/weights.h"
#include "train.h"
#include "world/os/cores.h"

namespace echelon::python {

namespace {

// A run's weights and all that is needed to use them.
class Loaded {
 public:
  Loaded(const std::string& run, const std::string& checkpoint, bool ema)
      : disk_(make_real_disk()), run_(cli::load_run(*disk_, run, checkpoint, ema)) {}

  std::string path() const { return run_.folder.path; }
  std::int64_t step() const { return run_.manifest.position.step; }
  std::string task() const { return std::string(models::name_of(run_.prepared.model->task())); }
  std::vector<std::string> class_names() const { return cli::class_names_of(run_.prepared.train->info()); }
  std::string recipe() const { return resolved_toml(run_.prepared.recipe); }

  py::array_t<float> predict(const py::array& x, int cores) {
    const data::Array array = array_from(x, "x");
    data::DatasetPtr samples;
    {
      const py::gil_scoped_release others_run;
      samples = cli::open_predict_array(*disk_, run_, array);
    }
    Cores all(cores > 0 ? cores : available_cores());
    py::array_t<float> out = answers(*run_.prepared.model, run_.table, run_.parameters.as<float>(), samples, all);
    const auto& targets = run_.prepared.train->info().targets;  // of a table: back to the data's own units
    if (!targets.empty() && static_cast<py::ssize_t>(targets.size()) == out.shape(1))
      for (py::ssize_t i = 0; i < out.size(); ++i) {
        const data::TargetColumn& t = targets[static_cast<std::size_t>(i % out.shape(1))];
        out.mutable_data()[i] = static_cast<float>(t.mean + t.deviation * static_cast<double>(out.data()[i]));
      }
    return out;
  }

  // The weights by name, where they lie; `self` is kept for as long as one of them is used.
  static py::dict weights(const py::object& self) {
    auto& loaded = self.cast<Loaded&>();
    py::dict all;
    for (const TensorView& view : weight_views(loaded.run_.table, loaded.run_.parameters.as<float>())) {
      std::vector<py::ssize_t> shape(view.shape.dims().begin(), view.shape.dims().end());
      py::array_t<float> array(shape, reinterpret_cast<const float*>(view.bytes.data()), self);
      py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
      all[py::str(view.name)] = array;
    }
    return all;
  }

 private:
  std::unique_ptr<Disk> disk_;
  cli::LoadedRun run_;
};

std::shared_ptr<data::Dataset> shared(data::DatasetPtr dataset) {
  return std::const_pointer_cast<data::Dataset>(std::move(dataset));
}

std::shared_ptr<data::Dataset> arrays(const py::array& x, const py::object& y, const std::string& input,
                                      bool channels_last, const py::object& scale, std::int64_t classes,
                                      const std::vector<std::string>& class_names) {
  data::ArrayOptions options;
  options.channels_last = channels_last, options.classes = classes, options.class_names = class_names;
  using Input = data::ArrayOptions::Input;
  options.input = input == "image"      ? Input::image
                  : input == "features" ? Input::features
                  : input == "tokens"   ? Input::tokens
                                        : Input::automatic;
  if (!scale.is_none()) options.scale = scale.cast<float>();
  const data::Array inputs = array_from(x, "x");
  std::optional<data::Array> labels;
  if (!y.is_none()) labels = array_from(py::array(y), "y");
  const py::gil_scoped_release others_run;
  return shared(data::array_dataset(inputs, std::move(labels), options));
}

std::shared_ptr<data::Dataset> python_dataset(const py::object& object, const py::list& fields, std::int64_t classes,
                                              const std::vector<std::string>& class_names,
                                              const std::string& fingerprint) {
  data::DatasetInfo info;
  info.size = py::len(object);
  for (const py::handle field : fields) {
    const auto f = py::reinterpret_borrow<py::tuple>(field);
    info.fields.push_back({f[0].cast<std::string>(), f[1].cast<std::string>() == "i32" ? DType::i32 : DType::f32,
                           Shape(f[2].cast<std::vector<std::int64_t>>())});
  }
  info.classes = classes;
  info.class_names = class_names;
  info.fingerprint = fingerprint;
  return shared(dataset_from(object, std::move(info)));
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled half of the package echelon.";
  const py::object error = py::register_exception<Error>(m, "Error", PyExc_RuntimeError);
  py::register_exception<Failure>(m, "Failure", error);
  static const py::object bad = py::register_exception<BadInput>(m, "BadInput", PyExc_ValueError);

  py::class_<data::Dataset, std::shared_ptr<data::Dataset>>(m, "Dataset", "Samples as a network sees them.")
      .def("__len__", &data::Dataset::size)
      .def("__getitem__", &sample_of, "One sample: a tuple of arrays.")
      .def_property_readonly("classes", [](const data::Dataset& d) { return d.info().classes; })
      .def_property_readonly("fingerprint", [](const data::Dataset& d) { return d.info().fingerprint; })
      .def_property_readonly("fields", [](const data::Dataset& d) {
        std::vector<std::string> names;
        for (const data::Field& field : d.fields()) names.push_back(data::to_string(field));
        return names;
      });
  m.def("arrays", &arrays, py::arg("x"), py::arg("y"), py::arg("input"), py::arg("channels_last"), py::arg("scale"),
        py::arg("classes"), py::arg("class_names"));
  m.def("python_dataset", &python_dataset, py::arg("object"), py::arg("fields"), py::arg("classes"),
        py::arg("class_names"), py::arg("fingerprint"));
  m.def("train", &train, py::arg("settings"), py::arg("tell"), py::arg("every_step"), py::arg("metrics"));
  m.def("check", &check, py::arg("settings"));
  m.def("layer_kinds", [] {
    std::vector<std::tuple<std::string, std::string, int, int>> kinds;
    for (const nn::LayerKind& k : nn::layer_table()) kinds.emplace_back(k.name, k.keys, k.least_inputs, k.most_inputs);
    return kinds;
  });
  m.def("system_names", [] { return system_names(*make_real_disk()); });

  py::class_<Loaded>(m, "Loaded", "The weights of a run at one checkpoint.")
      .def(py::init<std::string, std::string, bool>(), py::arg("run"), py::arg("checkpoint"), py::arg("ema"),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("path", &Loaded::path)
      .def_property_readonly("step", &Loaded::step)
      .def_property_readonly("task", &Loaded::task)
      .def_property_readonly("class_names", &Loaded::class_names)
      .def_property_readonly("recipe", &Loaded::recipe)
      .def("predict", &Loaded::predict, py::arg("x"), py::arg("cores"))
      .def("weights", [](const py::object& self) { return Loaded::weights(self); });
}

}  // namespace echelon::python
