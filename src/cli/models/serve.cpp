// `echelon serve`: trained networks that answer over HTTP.

#include <nlohmann/json.hpp>

#include "base/access.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/answers/loaded_run.h"
#include "cli/models/registered_model.h"
#include "cli/models/serve_inputs.h"
#include "cli/verbs.h"
#include "serve/server.h"
#include "world/os/cores.h"
#include "world/os/signals.h"

namespace echelon::cli {

namespace {

struct ServeSettings {
  std::vector<std::string> models;
  std::string checkpoint = "best", token_file;
  serve::ServerSettings server;
  serve::BatcherSettings batcher;
  std::int64_t body_mb = 16;
  double window_ms = 0.5, wait_ms = 50;
  int cores = available_cores();
  bool ema = false, json = false;
};

// [NAME[:VERSION]=]RUN, or MODEL@VERSION, which has both already
struct ModelArgument {
  std::string name, version = "1", run;
};

ModelArgument model_argument(const std::string& text) {
  ModelArgument m;
  const std::size_t equal = text.find('=');
  m.run = equal == std::string::npos ? text : text.substr(equal + 1);
  if (equal == std::string::npos && names_version(text)) {
    OpenRegistry open = open_registry("runs");
    const RegisteredModel named = registered_model(open, text);
    return {named.version.model, std::to_string(named.version.version), text};
  }
  m.name = equal == std::string::npos ? text.substr(text.find_last_of('/') + 1) : text.substr(0, equal);
  if (const std::size_t colon = m.name.find(':'); colon != std::string::npos) {
    m.version = m.name.substr(colon + 1);
    m.name.resize(colon);
  }
  if (m.name.empty() || m.name.find_first_of("/\"\\ ") != std::string::npos || m.run.empty())
    bad_input("'{}' is no model: write RUN, NAME=RUN, NAME:VERSION=RUN or MODEL@VERSION", text);
  if (m.version.empty() || m.version.size() > 9 || m.version.find_first_not_of("0123456789") != std::string::npos)
    bad_input("'{}': a version is a whole number", text);
  return m;
}

struct Loaded {
  ModelArgument argument;
  LoadedRun run;
  std::unique_ptr<serve::Batcher> batcher;
};

void serve_models(ServeSettings s) {
  const auto disk = make_real_disk();
  if (!s.token_file.empty()) {
    s.server.token = read_text(*disk, s.token_file, 4096);
    s.server.token.resize(s.server.token.find_last_not_of(" \r\n\t") + 1);
    if (s.server.token.size() < 16) bad_input("{}: a token has at least 16 characters", s.token_file);
  }
  s.server.body_bytes = static_cast<std::size_t>(s.body_mb) << 20;
  s.server.batch = s.batcher.batch;
  s.batcher.window_seconds = s.window_ms * 1e-3;
  s.batcher.queue_seconds = s.server.most_seconds = s.wait_ms * 1e-3;
  s.batcher.workers = s.cores;
  s.batcher.queue = std::max(s.batcher.queue, s.batcher.batch);
  std::vector<std::unique_ptr<Loaded>> loaded;
  std::vector<serve::ServedModel> models;
  for (const std::string& text : s.models) {
    auto one = std::make_unique<Loaded>(Loaded{model_argument(text), {}, nullptr});
    if (serve::find_model(models, one->argument.name, one->argument.version))
      bad_input("{} version {} is there twice: give one of them another version", one->argument.name,
                one->argument.version);
    one->run = load_run(*disk, one->argument.run, s.checkpoint, s.ema, RunData::described);
    one->batcher = std::make_unique<serve::Batcher>(
        *one->run.prepared.model, one->run.table, one->run.parameters.as<float>(), s.batcher, serve_adapter(one->run));
    models.push_back({one->argument.name, one->argument.version, one->batcher.get()});
    loaded.push_back(std::move(one));
  }
  StopSignals signals;
  serve::Server server(models, s.server);
  if (s.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& m : loaded)
      list.push_back({{"name", m->argument.name},
                      {"version", m->argument.version},
                      {"run_dir", m->run.folder.path},
                      {"step", m->run.manifest.position.step}});
    fmt::print("{}\n",
               nlohmann::ordered_json{{"host", s.server.host}, {"port", server.port()}, {"models", list}}.dump());
  } else {
    for (const auto& m : loaded)
      fmt::print("{} version {}: {}, {}\n", m->argument.name, m->argument.version, m->run.folder.path, m->run.which);
    fmt::print("http://{}:{}/v2  (Ctrl-C ends it; /metrics has the latencies)\n", s.server.host, server.port());
  }
  std::fflush(stdout);
  server.run(signals.flag());
}

}  // namespace

void add_serve(Verb program) {
  const Verb verb =
      program.add_subcommand("serve", "Trained networks that answer over HTTP (Open Inference Protocol v2)");
  auto s = std::make_shared<ServeSettings>();
  verb.add_option("models", s->models,
                  "RUN, NAME=RUN, NAME:VERSION=RUN, or a registered MODEL@VERSION, as many as you like")
      .required();
  verb.add_option("--host", s->server.host, "The address to listen on; beyond this machine only with a token")
      .show_default();
  verb.add_option("--port", s->server.port, "0: any that is free").show_default().range(0, 65535);
  verb.add_option("--token-file", s->token_file, "Requests need `Authorization: Bearer TOKEN`, the text of this file");
  verb.add_option("--batch", s->batcher.batch, "Samples at most in one run of a network").show_default().range(1, 4096);
  verb.add_option("--window", s->window_ms, "Milliseconds that a batch which is not full waits for more")
      .show_default()
      .range(0.0, 1000.0);
  verb.add_option("--queue", s->batcher.queue, "Samples at most that wait for a model; more are refused with 429")
      .show_default()
      .range(1, 1 << 20);
  verb.add_option("--wait", s->wait_ms,
                  "Milliseconds that an answer may take at the speed so far; more requests get 429")
      .show_default()
      .range(1.0, 60000.0);
  verb.add_option("--connections", s->server.connections,
                  "Requests at most that are at work at once, refusing others included")
      .show_default()
      .range(1, 4096);
  verb.add_option("--body", s->body_mb, "Megabytes at most in one request").show_default().range(1, 1024);
  verb.add_option("--cores", s->cores, "Cores that run networks").show_default().range(1, 1024);
  verb.add_option("--checkpoint", s->checkpoint,
                  "best (by train.monitor, and of equals the lowest loss), last or a step")
      .show_default();
  verb.add_flag("--ema", s->ema, "Use the average of the weights that optim.ema kept");
  verb.add_flag("--json", s->json, "Print one JSON object when it listens");
  verb.footer(
      "Examples:\n"
      "  echelon serve digits=runs/demo-1\n"
      "  curl localhost:8000/v2/models/digits\n"
      "  echelon serve digits:1=runs/demo-1 digits:2=runs/demo-2 flowers=flowers-1 --port 9000\n"
      "  echelon serve digits@1 digits@production      what `echelon models register` has named\n"
      "docs/models-in-and-out.md has requests and answers.");
  verb.action([s] { serve_models(*s); });
}

}  // namespace echelon::cli
