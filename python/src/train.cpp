#include "train.h"

#include <pybind11/stl.h>
#include <signal.h>

#include "answers.h"
#include "cli/answers/metric_text.h"
#include "cli/training/train_rank.h"
#include "convert.h"
#include "data/memory.h"
#include "models/describe.h"
#include "recipe/toml.h"
#include "run/job.h"
#include "run/run_plan.h"
#include "world/os/clock.h"

namespace echelon::python {

namespace {

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

}  // namespace

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

}  // namespace echelon::python
