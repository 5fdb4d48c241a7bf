// `echelon sample`: text from a trained language model, pictures from a generator or an autoencoder.

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "cli/answers/loaded_run.h"
#include "cli/answers/sample_pictures.h"
#include "cli/answers/sample_tokens.h"
#include "cli/runs/run_table.h"
#include "cli/verbs.h"
#include "data/vocabulary.h"
#include "world/os/clock.h"

namespace echelon::cli {

namespace {

struct SampleSettings {
  std::string run, checkpoint = "last", png = "samples.png";
  std::vector<std::string> prompts = {"\n"}, stops;
  std::int64_t length = 400;
  Drawing drawing;
  std::uint64_t seed = 1;
  bool no_cache = false, keep = false, json = false;
};

constexpr std::size_t most_kept_texts = 20;
constexpr std::uint64_t longest_kept_texts = 16u << 20;

// The run's folder keeps the newest texts, for the page.
void keep_texts(const SampleSettings& s, LoadedRun& run, const nlohmann::ordered_json& made) {
  std::vector<std::string> lines;
  if (run.disk->exists(run.folder.texts())) {
    std::istringstream before(read_text(*run.disk, run.folder.texts(), longest_kept_texts));
    for (std::string line; std::getline(before, line);) lines.push_back(line);
  }
  for (const auto& text : made) {
    const nlohmann::ordered_json line{{"time", std::floor(make_real_clock()->unix_seconds())},
                                      {"step", run.manifest.position.step},
                                      {"prompt", text["prompt"]},
                                      {"text", text["text"]},
                                      {"temperature", s.drawing.temperature}};
    lines.push_back(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  if (lines.size() > most_kept_texts) lines.erase(lines.begin(), lines.end() - most_kept_texts);
  write_file_atomically(*run.disk, run.folder.texts(), fmt::format("{}\n", fmt::join(lines, "\n")));
}

// One text for each prompt, printed as it comes.
void sample_text(const SampleSettings& s, LoadedRun& run, const data::Vocabulary& vocabulary) {
  std::vector<std::vector<std::int32_t>> begins;
  for (const std::string& prompt : s.prompts) {
    begins.push_back(vocabulary.encode(prompt, "--prompt"));
    if (begins.back().empty()) bad_input("--prompt must have at least one character");
  }
  for (const std::string& stop : s.stops)
    if (stop.empty()) bad_input("--stop must have at least one character");
  TokenScorer scorer(*run.prepared.model, run.table, run.parameters.as<float>(), !s.no_cache);
  auto all = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < begins.size(); ++p) {
    std::vector<std::int32_t>& tokens = begins[p];
    const std::size_t prompt = tokens.size();
    const Stream random({.seed = s.seed, .shard = static_cast<std::uint32_t>(p), .layer = stream_layer("sample")});
    scorer.restart();
    TextStream stream(s.stops, [&](std::string_view part) {
      if (s.json) return;
      fmt::print("{}", part);
      std::fflush(stdout);
    });
    if (!s.json) fmt::print("{}", s.prompts[p]);
    bool stopped = false;
    for (std::int64_t i = 0; i < s.length && !stopped; ++i) {
      tokens.push_back(draw_token(scorer.next(tokens), s.drawing, random.uniform(static_cast<std::uint64_t>(i))));
      stopped = !stream.write(vocabulary.decode(std::span(tokens).last(1)));
    }
    stream.finish();
    if (!s.json) fmt::print("\n");
    all.push_back(nlohmann::ordered_json{{"run_dir", run.folder.path},
                                         {"prompt", s.prompts[p]},
                                         {"text", stream.text()},
                                         {"tokens", tokens.size() - prompt},
                                         {"stopped", stopped},
                                         {"cache", scorer.cached()}});
  }
  if (s.keep) keep_texts(s, run, all);
  const auto keep_going = nlohmann::json::error_handler_t::replace;
  if (s.json) fmt::print("{}\n", (all.size() == 1 ? all[0] : all).dump(-1, ' ', false, keep_going));
}

void sample(const SampleSettings& s) {
  const auto disk = make_real_disk();
  LoadedRun run = load_run(*disk, s.run, s.checkpoint, false, RunData::described);
  const models::Task task = run.prepared.model->task();
  if (task == models::Task::generate || task == models::Task::reconstruct) {
    const std::vector<std::byte> sheet = sample_pictures(*run.disk, run, s.seed);
    write_named_file(*run.disk, s.png, sheet);
    if (s.keep) write_file_atomically(*run.disk, run.folder.pictures(), sheet);
    if (s.json)
      fmt::print("{}\n", nlohmann::ordered_json{{"run_dir", run.folder.path}, {"png", s.png}}.dump());
    else
      fmt::print("wrote {}\n", s.png);
    return;
  }
  const auto vocabulary = run.prepared.train->info().vocabulary;
  if (task != models::Task::language || !vocabulary)
    bad_input("{} writes neither text nor pictures: its model is {}", run.folder.path, run.prepared.model->name());
  sample_text(s, run, *vocabulary);
}

}  // namespace

void add_sample(Verb program) {
  const Verb verb =
      program.add_subcommand("sample", "Text from a language model, pictures from a generator or autoencoder");
  auto s = std::make_shared<SampleSettings>();
  verb.add_option("run", s->run, "A run's folder, its name in runs/, or a registered MODEL@VERSION").required();
  verb.add_option("--prompt", s->prompts, "How the text begins; several times: a text for each").one_each_time();
  verb.add_option("--stop", s->stops, "Words at which the text ends, before them; may be given several times")
      .one_each_time();
  verb.add_option("--length", s->length, "Tokens to write").show_default().range(1, 1 << 20);
  verb.add_option("--temperature", s->drawing.temperature, "0: always the likeliest; 1: as the model believes")
      .show_default()
      .range(0.0, 10.0);
  verb.add_option("--top-k", s->drawing.top_k, "Draw only among the so many likeliest (0: all)")
      .show_default()
      .not_negative();
  verb.add_option("--top-p", s->drawing.top_p, "Draw only among the likeliest that have this probability together")
      .show_default()
      .range(0.0, 1.0);
  verb.add_flag("--no-cache", s->no_cache,
                "Compute the whole window for every token, without a cache of keys and values: slower, the same text");
  verb.add_flag("--keep", s->keep,
                "Keep the text (the last 20) or the pictures in the run's folder too, where the board shows them");
  verb.add_option("--png", s->png, "Where to write pictures").show_default();
  verb.add_option("--seed", s->seed, "Another seed, another text").show_default();
  verb.add_option("--checkpoint", s->checkpoint, "best, last or a step").show_default();
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon sample runs/gpt-1 --prompt \"Call me\" --temperature 0.7\n"
      "  echelon sample runs/gpt-1 --prompt \"The whale\" --top-p 0.9 --stop . --length 200\n"
      "  echelon sample runs/gan-1 --png digits.png");
  verb.action([s] { sample(*s); });
}

}  // namespace echelon::cli
