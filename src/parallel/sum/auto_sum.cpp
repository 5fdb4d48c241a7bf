#include "parallel/sum/auto_sum.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "collective/algorithms.h"
#include "collective/all_reduce.h"
#include "collective/collectives.h"

namespace echelon {

PartInfo codec_choice_part() {
  return {"auto",
          "measures, and takes what makes a step fastest; none where nothing does",
          {{"candidates", "[\"fp16\", \"one_bit\", \"top_k\", \"low_rank\"]", "codecs to choose from, besides none"}}};
}

std::vector<NamedCodec> read_codec_choice(OptionReader& options) {
  options.ignore("name");
  std::vector<NamedCodec> choice;
  const std::vector<std::string> known = codec_names();
  const std::vector<std::string> wanted = options.texts("candidates", {"fp16", "one_bit", "top_k", "low_rank"});
  for (const std::string& name : wanted) {
    if (std::ranges::find(known, name) == known.end()) {
      const std::string guess = did_you_mean(name, known);
      options.problem("candidates",
                      fmt::format("has no '{}'{}", name,
                                  guess.empty() ? fmt::format("; known: {}", fmt::join(known, ", ")) : guess));
      continue;
    }
    Options table;
    table.where = options.where();
    table.items["name"] = Option{name, options.place("candidates")};
    OptionReader reader(table, options.problems());
    choice.push_back({name, read_codec(reader)});
  }
  if (wanted.empty()) options.problem("candidates", "are none: take codec none, or name some");
  options.done();
  return choice;
}

AutoSum::AutoSum(std::vector<NamedCodec> candidates, const std::vector<CodecPiece>& pieces, int n, int index)
    : candidates_(std::move(candidates)), pieces_(pieces), n_(n) {
  std::size_t total = 0;
  for (const CodecPiece& p : pieces) total += p.size;
  for (const NamedCodec& c : candidates_) {
    const auto way = CodedSum::usual_way(CodedSum::Encoding::of(*c.maker(pieces)), total, n);
    sums_.push_back(std::make_unique<CodedSum>(way, c.maker, pieces, n, index));
  }
}

// Fresh codecs are tried: those of the sums keep what they remember.
void AutoSum::measure(Group& group, std::span<const float> values, const CodecStep& step) {
  const std::int64_t before = chosen_;
  chosen_ = -1;
  if (n_ > 1 && !group.world().shared_memory()) {
    Clock& clock = group.world().clock();
    const LinkCosts& link = link_costs(group);
    std::vector<double> seconds;
    std::vector<float> out(values.size());
    for (const NamedCodec& c : candidates_) {
      const auto codec = c.maker(pieces_);
      std::vector<std::byte> bytes(codec->most_bytes());
      double encode = 1e9, add = 1e9;
      std::size_t written = 0;
      for (int time = 0; time < 2; ++time) {  // the first time memory is not there yet
        const double begun = clock.seconds();
        written = codec->encode(values, step, bytes);
        const double encoded = clock.seconds();
        codec->add(std::span(bytes).first(written), 1, out);
        encode = std::min(encode, encoded - begun);
        add = std::min(add, clock.seconds() - encoded);
      }
      auto encoding = CodedSum::Encoding::of(*codec);
      const auto way = CodedSum::usual_way(encoding, values.size(), n_);
      encoding.bytes = std::max(encoding.bytes, static_cast<double>(written));
      const double on_links = CodedSum::seconds(way, encoding, values.size(), n_, link);
      // Everybody decodes everybody's, or n parts twice, or the sum once.
      const double decodes = way == CodedSum::Way::owners ? 2 : way == CodedSum::Way::rounds ? 1 : n_;
      seconds.push_back(on_links + encode * (way == CodedSum::Way::owners ? 1 + 1.0 / n_ : 1) + add * decodes);
    }
    all_reduce(group, std::span(seconds), Reduction::max);
    const auto bytes = static_cast<double>(values.size_bytes());
    double best = 0.9 * choose_all_reduce(group, values.size_bytes()).seconds(bytes, n_, link);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      if (seconds[i] < best) best = seconds[i], chosen_ = static_cast<std::int64_t>(i);
  }
  since_measured_ = 1;
  coded_times_ = 0;
  coded_seconds_ = 0;
  // After a resume there may be something left of a codec that had been given up before it was saved.
  if (before < 0 || chosen_ != before) give_back_ = true;
}

void AutoSum::check(Group& group, double plain_seconds) {
  struct Seconds {
    double coded, plain;
  };
  const auto measured = all_gather_struct(
      group, Seconds{coded_seconds_ / static_cast<double>(std::max<std::int64_t>(1, coded_times_)), plain_seconds},
      "comparing a codec");
  const double coded = std::ranges::max(measured, {}, &Seconds::coded).coded;
  const double plain = std::ranges::max(measured, {}, &Seconds::plain).plain;
  coded_seconds_ = 0;
  coded_times_ = 0;
  if (coded < plain) return;
  chosen_ = -1;
  give_back_ = true;
}

void AutoSum::run(Group& group, std::span<float> values, const CodecStep& step, const Plain& plain) {
  if (since_measured_ == 0 || since_measured_ >= measure_again)
    measure(group, values, step);
  else
    ++since_measured_;
  if (give_back_)
    for (auto& sum : sums_) sum->give_back(values);
  give_back_ = false;

  const bool checks = chosen_ >= 0 && (since_measured_ == first_check || since_measured_ % check_every == 0);
  Clock& clock = group.world().clock();
  const double begun = clock.seconds();
  if (chosen_ < 0 || checks) {
    plain(group, values);
    if (checks) check(group, clock.seconds() - begun);
  } else {
    sums_[static_cast<std::size_t>(chosen_)]->run(group, values, step);
    if (since_measured_ > 1) {  // the first one waits for members that have measured longer
      coded_seconds_ += clock.seconds() - begun;
      ++coded_times_;
    }
  }
}

std::vector<StateSpan> AutoSum::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < sums_.size(); ++i) add_states(all, candidates_[i].name + " ", sums_[i]->state());
  all.push_back(as_state("chosen", chosen_));
  return all;
}

}  // namespace echelon
