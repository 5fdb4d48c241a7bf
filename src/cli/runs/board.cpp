// `echelon board`: the page on which runs are watched.

#include <nlohmann/json.hpp>

#include "base/access.h"
#include "base/error.h"
#include "cli/runs/run_facts.h"
#include "cli/runs/run_samples.h"
#include "cli/systems/system_details.h"
#include "cli/training/run_record.h"
#include "cli/verbs.h"
#include "models/describe.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "web/server.h"
#include "world/os/folder_disk.h"
#include "world/os/signals.h"
#include "world/transport/tcp/secret.h"

namespace echelon::cli {

namespace {

struct BoardSettings {
  std::string root = "runs", host = "127.0.0.1", token_file, certificate, key;
  int port = 6006;
  bool json = false;
};

// The network of a run as one core runs it.
Json network_of_run(const RunFolder& folder) {
  const auto disk = make_folder_disk(folder.path);
  Problems problems;
  const PreparedRun run = prepare_run(*disk, folder.recipe(), with_kept_encoder(*disk, folder), problems);
  problems.throw_if_any(folder.recipe());
  const TrainSpec& train = run.recipe.train;
  Json json =
      Json::parse(models::to_json(models::describe(*run.model, (train.batch + train.shards - 1) / train.shards, true)));
  json["global_batch"] = train.batch;
  json["shards"] = train.shards;
  return json;
}

// A run that still goes on has no summary; its cluster.json is there from the start.
int workers_of(Disk& disk, const RunFolder& folder) {
  if (const Json summary = read_summary(disk, folder); summary.is_object()) return summary.value("workers", 1);
  if (!disk.exists(folder.cluster())) return 1;
  const Json cluster = parse_json(read_text(disk, folder.cluster()), folder.cluster());
  const auto ranks = cluster.is_object() ? cluster.find("ranks") : cluster.end();
  return ranks != cluster.end() && ranks->is_array() ? std::max(1, static_cast<int>(ranks->size())) : 1;
}

Json system_of(const RunFolder& folder) {
  const auto disk = make_folder_disk(folder.path);
  const Options recipe = parse_toml(read_text(*disk, folder.recipe(), TomlLimits{}.bytes), folder.recipe());
  const auto at = recipe.items.find("composed_from");
  const auto* name = at == recipe.items.end() ? nullptr : std::get_if<std::string>(&at->second.value);
  const int workers = workers_of(*disk, folder);
  Json json = name ? Json(system_json(*name, std::max(2, workers), 64)) : Json::object();
  json["workers"] = workers;
  return json;
}

std::string token_of(const BoardSettings& s) {
  return tcp::to_hex(s.token_file.empty() ? tcp::make_secret() : tcp::read_secret_file(s.token_file));
}

void serve_board(const BoardSettings& s) {
  if (!is_loopback(s.host) && s.token_file.empty())
    bad_input(
        "--host {}: other machines could reach the page there, so it needs --token-file (made by `echelon secret`), "
        "--certificate and --key",
        s.host);
  OpenRegistry open = open_registry(s.root);
  const auto clock = make_real_clock();
  web::BoardApi api(open.root, *clock, {.read = run_record, .graph = network_of_run, .system = system_of});
  StopSignals signals;
  const std::string token = token_of(s);
  web::BoardServer server(api,
                          {.host = s.host, .port = s.port, .certificate = s.certificate, .key = s.key, .token = token});
  const std::string shown = s.token_file.empty() ? token : "";
  if (s.json)
    fmt::print("{}\n",
               nlohmann::ordered_json{{"address", server.address()}, {"port", server.port()}, {"token", shown}}.dump());
  else
    fmt::print("{}{}        Ctrl-C ends it\n{}\n", server.address(), shown.empty() ? "" : "#token=" + shown,
               shown.empty()
                   ? "actions need the token of " + s.token_file
                   : "whoever has the part behind # may pause, stop and change runs; without it the page only shows");
  std::fflush(stdout);
  server.run(signals.flag());
}

}  // namespace

void add_board(Verb program) {
  const Verb verb = program.add_subcommand("board", "Serve a page that shows all runs, live ones too");
  const auto s = std::make_shared<BoardSettings>();
  verb.add_option("--port", s->port, "Where to listen; 0: any port that is free").range(0, 65535).show_default();
  verb.add_option("--host", s->host, "The address to listen on").show_default();
  verb.add_option("--root", s->root, "Where the runs are").show_default();
  verb.add_option("--token-file", s->token_file, "Take the token for actions from here (made by `echelon secret`)");
  verb.add_option("--certificate", s->certificate, "A TLS certificate (PEM): needed beyond this machine");
  verb.add_option("--key", s->key, "Its private key (PEM)");
  verb.add_flag("--json", s->json, "Print address, port and token as one JSON object");
  verb.footer(
      "Examples:\n  echelon board\n  echelon board --root old-runs --port 0\n"
      "  ssh -L 6006:localhost:6006 cluster      then, there: echelon board; and open the address here\n"
      "docs/board.md describes the page, docs/security.md who may do what.");
  verb.action([s] { serve_board(*s); });
}

}  // namespace echelon::cli
