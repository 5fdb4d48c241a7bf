// `echelon models`: what can be trained by name, and what exactly a network is.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/verbs.h"
#include "models/describe.h"
#include "models/zoo.h"
#include "recipe/prepare.h"
#include "world/os/cores.h"
#include "world/os/disk.h"

namespace echelon::cli {

namespace {

struct ShowSettings {
  std::string name;
  std::vector<std::string> overrides;
  std::int64_t batch = 0;  // 0: the recipe's, or 32
  bool json = false;
};

void list_models(bool json) {
  if (json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& e : models::zoo()) all.push_back({{"name", e.name}, {"help", e.help}, {"keys", e.keys}});
    fmt::print("{}\n", all.dump());
    return;
  }
  for (const auto& e : models::zoo()) fmt::print("{:<16} {}\n{:<16}   settings: {}\n", e.name, e.help, "", e.keys);
}

// A recipe is a file; networks that have a name are none.
bool is_recipe(Disk& disk, const std::string& name) { return name.ends_with(".toml") || disk.exists(name); }

void show_named(const ShowSettings& s) {
  if (!s.overrides.empty()) bad_input("--set changes a recipe, but {} is a network: give a recipe's file", s.name);
  const auto model = models::make_model(s.name, models::find_model(s.name).usual_inputs());
  const auto description = models::describe(*model, s.batch > 0 ? s.batch : 32);
  fmt::print("{}\n", s.json ? models::to_json(description) : models::to_text(description));
}

// A recipe's own network, with the shapes of its data, as one core runs it: on a shard of the batch.
void show_recipe(Disk& disk, const ShowSettings& s) {
  Problems problems;
  std::vector<std::string> overrides = s.overrides;
  if (s.batch > 0) overrides.push_back(fmt::format("train.batch={}", s.batch));
  const PreparedRun run = prepare_run(disk, s.name, overrides, problems);
  problems.throw_if_any(s.name);
  const TrainSpec& train = run.recipe.train;
  const auto description = models::describe(*run.model, (train.batch + train.shards - 1) / train.shards, true);
  if (s.json) {
    auto json = nlohmann::ordered_json::parse(models::to_json(description));
    json["recipe"] = s.name;
    json["global_batch"] = train.batch;
    json["shards"] = train.shards;
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{}: {}\n{}\n", s.name, describe_batch(train.batch, train.shards, available_cores()),
             models::to_text(description));
  if (description.statistics > 0)
    fmt::print("batch norm sees the {} samples of one shard, not the batch of {}: train.shards decides how many\n",
               description.batch, train.batch);
}

void show_model(const ShowSettings& s) {
  const auto disk = make_real_disk();
  if (is_recipe(*disk, s.name))
    show_recipe(*disk, s);
  else
    show_named(s);
}

}  // namespace

void add_models(Verb program) {
  const Verb verb =
      program.add_subcommand("models", "List the networks, show one; versions of trained ones, and differences");
  verb.require_subcommand(1);
  verb.footer(
      "Examples:\n  echelon models list\n  echelon models show resnet18 --batch 64\n  echelon models show my.toml");
  auto json = std::make_shared<bool>(false);
  const Verb listing = verb.add_subcommand("list", "All networks that have a name");
  listing.add_flag("--json", *json, "Print JSON");
  listing.footer("Example:\n  echelon models list");
  listing.action([json] { list_models(*json); });

  auto show = std::make_shared<ShowSettings>();
  const Verb showing = verb.add_subcommand(
      "show", "Layers, shapes, parameters, work per sample, and the exact memory of a training step");
  showing.add_option("network", show->name, "A network of `echelon models list`, or a recipe").required();
  showing.add_option("--batch", show->batch, "Samples in the step (default: the recipe's, else 32)").range(1, 1 << 20);
  showing.add_option("--set", show->overrides, "Change one setting of the recipe: --set train.batch=256")
      .one_each_time();
  showing.add_flag("--json", show->json, "Print JSON");
  showing.footer(
      "Examples:\n  echelon models show resnet18 --batch 64\n  echelon models show recipes/models/layers-digits.toml\n"
      "  echelon models show my.toml --set train.batch=256 --json");
  showing.action([=] { show_model(*show); });
  add_models_registry(verb);
}

}  // namespace echelon::cli
