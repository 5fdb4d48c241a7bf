// `echelon models`: what can be trained by name, and what exactly a network is.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/verbs.h"
#include "models/describe.h"
#include "models/zoo.h"

namespace echelon::cli {

namespace {

void list_models(bool json) {
  if (json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& e : models::zoo()) all.push_back({{"name", e.name}, {"help", e.help}, {"keys", e.keys}});
    fmt::print("{}\n", all.dump());
    return;
  }
  for (const auto& e : models::zoo()) fmt::print("{:<16} {}\n{:<16}   settings: {}\n", e.name, e.help, "", e.keys);
}

void show_model(const std::string& name, std::int64_t batch, bool json) {
  const auto model = models::make_model(name, models::find_model(name).usual_inputs());
  const auto description = models::describe(*model, batch);
  fmt::print("{}\n", json ? models::to_json(description) : models::to_text(description));
}

}  // namespace

void add_models(Verb program) {
  const Verb verb = program.add_subcommand("models", "List the networks, or show one in detail");
  verb.require_subcommand(1);
  verb.footer("Examples:\n  echelon models list\n  echelon models show resnet18 --batch 64");
  auto json = std::make_shared<bool>(false);
  const Verb listing = verb.add_subcommand("list", "All networks that have a name");
  listing.add_flag("--json", *json, "Print JSON");
  listing.footer("Example:\n  echelon models list");
  listing.action([json] { list_models(*json); });

  auto name = std::make_shared<std::string>();
  auto batch = std::make_shared<std::int64_t>(32);
  const Verb showing = verb.add_subcommand(
      "show", "Layers, shapes, parameters, work per sample, and the exact memory of a training step");
  showing.add_option("name", *name, "A network of `echelon models list`").required();
  showing.add_option("--batch", *batch, "Samples in the step").show_default().range(1, 1 << 20);
  showing.add_flag("--json", *json, "Print JSON");
  showing.footer("Example:\n  echelon models show resnet18 --batch 64");
  showing.action([=] { show_model(*name, *batch, *json); });
}

}  // namespace echelon::cli
