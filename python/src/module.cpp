// The compiled half of the package `echelon`: what Python needs of the library, and nothing that Python can do itself
// (python/echelon has the other half). Python's global lock is released wherever the library computes.

#include <pybind11/stl.h>
#include <signal.h>

#include "base/error.h"
#include "cli/answers/loaded_run.h"
#include "cli/answers/metric_text.h"
#include "cli/answers/predict_inputs.h"
#include "cli/training/train_rank.h"
#include "convert.h"
#include "data/memory.h"
#include "models/describe.h"
#include "nn/layer_table.h"
#include "parallel/step/predictor.h"
#include "recipe/system_file.h"
#include "recipe/toml.h"
#include "run/job.h"
#include "run/run_plan.h"
#include "run/weights.h"
#include "world/os/clock.h"
#include "world/os/cores.h"

namespace echelon::python {

namespace {

// Probabilities where the model has classes, else its output: [samples, width].
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

// What the samples should have been answered with: [samples, ...], in the data's order.
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

// Tells Python what happens in a run, as dictionaries. If the function returns True, the run saves and stops.
class Events : public RunListener {
 public:
  Events(const py::function& tell, bool every_step) : tell_(tell), every_step_(every_step) {}

  void on_step(const StepEvent& e) override {
    const double now = clock_->seconds();
    if (!every_step_ && now - last_ < 0.1 && e.step != e.total_steps) return;
    last_ = now;
    const py::gil_scoped_acquire lock;
    py::dict event;
    event["step"] = e.step, event["total_steps"] = e.total_steps, event["epoch"] = e.epoch, event["lr"] = e.lr;
    event["loss"] = e.result.loss;
    if (e.result.terms > 0) event["accuracy"] = e.result.correct / static_cast<double>(e.result.terms);
    event["samples_per_s"] = e.samples_per_s, event["seconds"] = e.seconds, event["eta_seconds"] = e.eta_seconds;
    send("step", event);
  }
  void on_evaluation(const EvaluationEvent& e) override {
    const py::gil_scoped_acquire lock;
    py::dict event;
    event["step"] = e.step, event["epoch"] = e.epoch, event["part"] = e.part, event["best"] = e.best;
    py::dict values;
    for (const auto& [name, value] : cli::named_values(e.result, e.part + "_")) values[py::str(name)] = value;
    event["metrics"] = values;
    send("evaluation", event);
  }
  void on_note(const std::string& text) override {
    const py::gil_scoped_acquire lock;
    send("note", py::dict(py::arg("text") = text));
  }
  void on_result(const std::string& json) {
    const py::gil_scoped_acquire lock;
    send("result", from_json(json));
  }

 private:
  void send(const char* kind, const py::object& event) {
    const py::object wish = tell_(kind, event);
    if (wish.is(py::bool_(true))) ::raise(SIGUSR1);  // as a scheduler would: save and stop
  }

  py::function tell_;
  bool every_step_;
  std::unique_ptr<Clock> clock_ = make_real_clock();
  double last_ = -1;
};

// Python functions of (predictions, targets) as metrics.
std::function<MetricValues(const EvaluatedModel&)> own_metrics(const py::dict& functions) {
  if (functions.empty()) return {};
  // Jobs are copied by code that does not hold the lock: the copies share one dictionary.
  const std::shared_ptr<const py::dict> kept(new py::dict(functions), [](const py::dict* p) {
    const py::gil_scoped_acquire lock;
    delete p;
  });
  return [kept](const EvaluatedModel& m) {
    const py::gil_scoped_acquire lock;
    const py::array predictions = answers(m.model, m.table, m.weights, m.data, m.cores), expected = targets(m.data);
    MetricValues values;
    for (const auto& [name, function] : *kept)
      values.emplace_back(name.cast<std::string>(), py::float_(function(predictions, expected)).cast<double>());
    return values;
  };
}

struct TrainArguments {
  py::object recipe;
  std::string name, system, plan, world, run, root, resume;
  std::vector<std::string> overrides;
  int workers = 1, cores = 0;
  data::MemoryParts parts;
};

cli::TrainSettings settings_from(const TrainArguments& a) {
  cli::TrainSettings s;
  s.quiet = true;
  s.system = a.system, s.plan = a.plan, s.overrides = a.overrides;
  s.world.workers = a.workers, s.world.world = a.world, s.world.cores = a.cores;
  s.run = a.run, s.root = a.root;
  s.resume = a.resume == "auto" ? cli::Resume::automatic : a.resume.empty() ? cli::Resume::no : cli::Resume::yes;
  s.places.memory = a.parts;
  if (py::isinstance<py::str>(a.recipe)) {
    s.recipe = a.recipe.cast<std::string>();
    if (!a.parts.empty()) {  // the samples take the place of what the file says about data
      s.tree = parse_toml(read_text(*make_real_disk(), s.recipe, TomlLimits{}.bytes), s.recipe);
    }
  } else {
    s.recipe = a.name + ".toml";
    s.tree = options_from(py::dict(a.recipe));
  }
  if (!a.parts.empty()) {
    Options described = data::describe_memory(a.parts);
    Option& data = s.tree->items["data"];
    if (const auto* given = std::get_if<Option::Table>(&data.value))
      for (const char* key :
           {"transform", "validation", "test", "split", "stratify", "split_seed", "limit", "limit_test"})
        if (const auto it = (*given)->items.find(key); it != (*given)->items.end()) described.items[key] = it->second;
    data.value = std::make_shared<Options>(std::move(described));
  }
  return s;
}

TrainArguments arguments(const py::dict& d) {
  TrainArguments a;
  a.recipe = d["recipe"];
  a.name = d["name"].cast<std::string>(), a.system = d["system"].cast<std::string>();
  a.plan = d["plan"].cast<std::string>(), a.world = d["world"].cast<std::string>();
  a.run = d["run"].cast<std::string>(), a.root = d["root"].cast<std::string>();
  a.resume = d["resume"].cast<std::string>();
  a.overrides = d["overrides"].cast<std::vector<std::string>>();
  a.workers = d["workers"].cast<int>(), a.cores = d["cores"].cast<int>();
  for (const auto& [part, handle] : py::dict(d["parts"]))
    a.parts[part.cast<std::string>()] = handle.cast<std::shared_ptr<data::Dataset>>();
  return a;
}

void train(const py::dict& d, const py::function& tell, bool every_step, const py::dict& metrics) {
  cli::TrainSettings settings = settings_from(arguments(d));
  Events events(tell, every_step);
  settings.listener = &events;
  settings.result = [&](const std::string& json) { events.on_result(json); };
  auto own = own_metrics(metrics);
  {
    const py::gil_scoped_release others_run;
    cli::train_recipe(settings, own);
  }
}

// The recipe as it would be run; BadInput with everything that is wrong with it.
py::tuple check(const py::dict& d) {
  const cli::TrainSettings s = settings_from(arguments(d));
  std::string toml, model;
  {
    const py::gil_scoped_release others_run;
    const auto disk = make_real_disk();
    Problems problems;
    const PreparedRun prepared = cli::prepare_settings(*disk, s, problems);
    if (problems.empty())
      check_run_plan(prepared, read_run_plan(*disk, prepared.recipe, s.plan, problems), s.world.workers, s.world.cores,
                     problems);
    check_system(prepared, {.count = s.world.workers, .share_memory = true}, problems);
    problems.throw_if_any(s.recipe);
    toml = resolved_toml(prepared.recipe);
    model = models::to_json(models::describe(*prepared.model, prepared.recipe.train.batch));
  }
  return py::make_tuple(toml, from_json(model));
}

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
