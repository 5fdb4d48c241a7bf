// `echelon sample`: text from a trained language model, pictures from a generator or an autoencoder.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "cli/loaded_run.h"
#include "cli/sample_pictures.h"
#include "cli/verbs.h"
#include "data/vocabulary.h"

namespace echelon::cli {

namespace {

struct SampleSettings {
  std::string run, checkpoint = "last", prompt = "\n", png;
  std::int64_t length = 400;
  double temperature = 0.8;
  int top = 0;
  std::uint64_t seed = 1;
  bool json = false;
};

// One token from scores: the likeliest at temperature 0, else drawn; only among the `top` best if that is not 0.
std::int32_t draw(std::span<const float> scores, double temperature, int top, float uniform) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  auto better = [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  };
  std::ranges::stable_sort(order, better);
  if (temperature <= 0) return order[0];
  if (top > 0 && static_cast<std::size_t>(top) < order.size()) order.resize(static_cast<std::size_t>(top));
  std::vector<double> weights;
  for (std::int32_t t : order)
    weights.push_back(
        std::exp((scores[static_cast<std::size_t>(t)] - scores[static_cast<std::size_t>(order[0])]) / temperature));
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < order.size(); ++i)
    if ((left -= weights[i]) <= 0) return order[i];
  return order.back();
}

// Feeds tokens and gives the scores of the next one: by a window over the last tokens, or token by token with a state.
class Speaker {
 public:
  explicit Speaker(LoadedRun& run)
      : context_(run.prepared.model->context()),
        plan_(compile(run.prepared.model->prediction(1))),
        arena_(plan_.memory.arena_bytes),
        executor_(plan_, run.table, run.parameters.as<float>(), {}, std::span(arena_.data(), arena_.bytes())),
        input_(run.prepared.model->inputs().input().name) {
    for (const auto& c : executor_.carries()) state_.emplace_back(c.from.size());
  }

  std::span<const float> next(const std::vector<std::int32_t>& tokens) {
    const auto window = static_cast<std::size_t>(context_);
    auto* in = reinterpret_cast<std::int32_t*>(executor_.input(input_).data());
    std::size_t last = 0;
    if (state_.empty()) {  // the end of the text so far, from the window's start on: what follows is masked
      const std::size_t n = std::min(tokens.size(), window);
      std::fill_n(in, window, 0);
      std::copy(tokens.end() - static_cast<std::ptrdiff_t>(n), tokens.end(), in);
      last = n - 1;
      executor_.run({});
    } else {
      for (; fed_ < tokens.size(); ++fed_) {
        in[0] = tokens[fed_];
        for (std::size_t i = 0; i < state_.size(); ++i)
          std::memcpy(executor_.carries()[i].from.data(), state_[i].data(), state_[i].size());
        executor_.run({});
        for (std::size_t i = 0; i < state_.size(); ++i)
          std::memcpy(state_[i].data(), executor_.carries()[i].to.data(), state_[i].size());
      }
    }
    const auto logits = executor_.output("logits");
    const std::size_t vocabulary = logits.size() / sizeof(float) / (state_.empty() ? window : 1);
    return {reinterpret_cast<const float*>(logits.data()) + last * vocabulary, vocabulary};
  }

 private:
  std::int64_t context_;
  Plan plan_;
  Buffer arena_;
  Executor executor_;
  std::string input_;
  std::vector<std::vector<std::byte>> state_;
  std::size_t fed_ = 0;
};

void sample(const SampleSettings& s) {
  const auto disk = make_real_disk();
  LoadedRun run = load_run(*disk, s.run, s.checkpoint);
  const models::Task task = run.prepared.model->task();
  if (task == models::Task::generate || task == models::Task::reconstruct) {
    const std::string path = s.png.empty() ? run.folder.path + "/samples.png" : s.png;
    sample_pictures(*disk, run, path, s.seed);
    if (s.json)
      fmt::print("{}\n", nlohmann::ordered_json{{"run_dir", run.folder.path}, {"png", path}}.dump());
    else
      fmt::print("wrote {}\n", path);
    return;
  }
  const auto vocabulary = run.prepared.train->info().vocabulary;
  if (task != models::Task::language || !vocabulary)
    bad_input("{} writes neither text nor pictures: its model is {}", run.folder.path, run.prepared.model->name());
  std::vector<std::int32_t> tokens = vocabulary->encode(s.prompt, "--prompt");
  if (tokens.empty()) bad_input("--prompt must have at least one character");
  const std::size_t prompt = tokens.size();
  const Stream random({.seed = s.seed, .layer = stream_layer("sample")});
  Speaker speaker(run);
  if (!s.json) fmt::print("{}", s.prompt);
  for (std::int64_t i = 0; i < s.length; ++i) {
    tokens.push_back(draw(speaker.next(tokens), s.temperature, s.top, random.uniform(static_cast<std::uint64_t>(i))));
    if (!s.json && vocabulary->is_bytes() == false) {
      fmt::print("{}", vocabulary->decode(std::span(tokens).last(1)));
      std::fflush(stdout);
    }
  }
  const std::string text = vocabulary->decode(std::span<const std::int32_t>(tokens).subspan(prompt));
  if (s.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"run_dir", run.folder.path}, {"prompt", s.prompt}, {"text", text}}.dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}\n", vocabulary->is_bytes() ? text : "");
}

}  // namespace

void add_sample(Verb program) {
  const Verb verb =
      program.add_subcommand("sample", "Text from a language model, pictures from a generator or autoencoder");
  auto s = std::make_shared<SampleSettings>();
  verb.add_option("run", s->run, "A run's folder, or its name in runs/").required();
  verb.add_option("--prompt", s->prompt, "How the text begins");
  verb.add_option("--length", s->length, "Tokens to write").show_default().range(1, 1 << 20);
  verb.add_option("--temperature", s->temperature, "0: always the likeliest; 1: as the model believes")
      .show_default()
      .range(0.0, 10.0);
  verb.add_option("--top", s->top, "Draw only among the so many likeliest (0: all)").show_default().not_negative();
  verb.add_option("--png", s->png, "Where to write pictures (default: samples.png in the run's folder)");
  verb.add_option("--seed", s->seed, "Another seed, another text").show_default();
  verb.add_option("--checkpoint", s->checkpoint, "best, last or a step").show_default();
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon sample runs/gpt-1 --prompt \"Call me\" --temperature 0.7\n  echelon sample runs/gan-1 "
      "--png digits.png");
  verb.action([s] { sample(*s); });
}

}  // namespace echelon::cli
