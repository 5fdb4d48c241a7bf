// `echelon bench collective`: the time of an all-reduce among ranks, with the columns of nccl-tests. Every result is
// checked before it is timed. The last column is the share of what this machine can do at best: the least time in which
// the same ranks were ever seen to add and copy as many bytes, on memory of their own without having to meet, or in an
// all-reduce.

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/bench/bench.h"
#include "cli/training/world_flags.h"
#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/combine.h"
#include "tensor/buffer.h"

namespace echelon::cli {

namespace {

struct CollectiveBenchSettings {
  WorldFlags where;
  std::vector<std::string> bytes{"4096", "64K", "1M", "16M", "100000000"};
  std::vector<std::string> algorithms{"auto"};
  std::string type = "float32", op = "sum";
  int repeats = 0;
  bool json = false, own_memory = false;
};

struct CheckedBench {  // the settings, read and checked
  std::vector<std::size_t> bytes;
  std::vector<const Algorithm*> algorithms;  // null: auto
  bool all = false;                          // those that cannot work here are left out
  ElementType type = ElementType::float32;
  Reduction reduction = Reduction::sum;
};

std::size_t read_bytes(const std::string& text) {
  std::size_t at = 0;
  unsigned long long number = 0;
  try {
    number = std::stoull(text, &at);
  } catch (const std::exception&) {
    at = 0;
  }
  const std::string unit = text.substr(at);
  int shift = unit.empty() ? 0 : unit == "K" || unit == "KiB" ? 10 : unit == "M" || unit == "MiB" ? 20 : -1;
  if (unit == "G" || unit == "GiB") shift = 30;
  if (at == 0 || text[0] == '-' || shift < 0 || number > (std::size_t{1} << 40 >> shift))
    bad_input("--bytes '{}' is no size; write 4096, 64K, 1M or 1G", text);
  return static_cast<std::size_t>(number) << shift;
}

CheckedBench read(const CollectiveBenchSettings& s) {
  CheckedBench plan;
  plan.type = element_type(s.type);
  plan.reduction = reduction_of(s.op);
  if (plan.type == ElementType::bytes) bad_input("--type bytes: numbers are needed; float32, float64, int32 or int64");
  for (const std::string& text : s.bytes) plan.bytes.push_back(read_bytes(text));
  for (const std::string& name : s.algorithms) {
    if (name == "all") {
      plan.all = true;
      for (const Algorithm& a : all_reduce_algorithms()) plan.algorithms.push_back(&a);
    } else {
      plan.algorithms.push_back(name == "auto" ? nullptr : &find_algorithm(name));
    }
  }
  return plan;
}

double median(std::vector<double>& seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

double slowest(Group& group, double seconds) {
  all_reduce(group, std::span(&seconds, 1), Reduction::max);
  return seconds;
}

struct Seconds {
  double median = 0, least = 0;
};

// Over repeats, with a barrier before each; of the slowest rank.
template <typename F>
Seconds timed(Group& group, int repeats, const F& f) {
  std::vector<double> seconds(static_cast<std::size_t>(repeats));
  for (int i = 0; i < 3; ++i) f();
  for (double& s : seconds) {
    barrier(group);
    const double start = group.world().now();
    f();
    s = group.world().now() - start;
  }
  const double middle = slowest(group, median(seconds));  // which sorts them
  return {middle, slowest(group, seconds.front())};
}

// Elements that are not what the definition says: rank r brings r + 1 + i % 97.
std::int64_t wrong(Group& group, TypedSpan data, Reduction reduction, const AllReduceOptions& options) {
  const int n = group.size();
  const auto each = [&](auto zero) {
    using T = decltype(zero);
    const std::span<T> x(reinterpret_cast<T*>(data.data), data.count);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 97) + static_cast<T>(group.index() + 1);
    all_reduce(group, data, reduction, options);
    std::int64_t bad = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T base = static_cast<T>(i % 97);
      T want = base * static_cast<T>(n) + static_cast<T>(std::int64_t{n} * (n + 1) / 2);
      if (reduction == Reduction::mean) want = static_cast<T>(want / static_cast<T>(n));
      if (reduction == Reduction::min) want = base + static_cast<T>(1);
      if (reduction == Reduction::max) want = base + static_cast<T>(n);
      bad += x[i] == want ? 0 : 1;
    }
    return bad;
  };
  std::int64_t bad = data.type == ElementType::float32   ? each(float{})
                     : data.type == ElementType::float64 ? each(double{})
                     : data.type == ElementType::int32   ? each(std::int32_t{})
                                                         : each(std::int64_t{});
  all_reduce(group, std::span(&bad, 1), Reduction::sum);
  return bad;
}

// A rank's share of the work with nothing in its way: of n copies of its part, add them all and write the sum to each.
double copy_and_add(Group& group, std::size_t bytes, int repeats) {
  const auto n = static_cast<std::size_t>(group.size());
  const std::size_t part = std::max<std::size_t>(1, bytes / n / sizeof(float)), block = 2048;
  Buffer memory(n * aligned(part * sizeof(float)));
  const std::size_t stride = aligned(part * sizeof(float));
  const Seconds seconds = timed(group, repeats, [&] {
    for (std::size_t at = 0; at < part; at += block) {
      const std::size_t count = std::min(block, part - at);
      std::byte* into = memory.data() + at * sizeof(float);
      for (std::size_t m = 1; m < n; ++m)
        combine(ElementType::float32, Reduction::sum, into, into, into + m * stride, count);
      for (std::size_t m = 1; m < n; ++m) std::memcpy(into + m * stride, into, count * sizeof(float));
    }
  });
  return seconds.least;
}

void measure(World& world, const CollectiveBenchSettings& s, const CheckedBench& plan) {
  Group group = Group::everyone(world);
  const bool speaks = world.rank() == 0;
  const std::size_t most = *std::ranges::max_element(plan.bytes);
  Buffer own(s.own_memory ? most : 0);
  std::byte* memory = s.own_memory ? own.data() : group.allocate(most).data();
  if (speaks && !s.json)
    fmt::print(
        "# all-reduce among {} ranks, world {}, numbers in {} memory\n{:>12} {:>12} {:>8} {:>6} {:>20} {:>12} {:>8} "
        "{:>8} {:>6} {:>6}\n",
        group.size(), world.place().world, s.own_memory ? "their own" : "shared", "size", "count", "type", "redop",
        "algorithm", "time us", "algbw", "busbw", "wrong", "limit");
  for (const std::size_t size : plan.bytes) {
    const TypedSpan data{memory, size / size_of(plan.type), plan.type};
    const int repeats = s.repeats > 0 ? s.repeats : data.bytes() > 10000000 ? 15 : data.bytes() > 500000 ? 200 : 2000;
    const double limit = copy_and_add(group, data.bytes(), repeats);
    for (const Algorithm* algorithm : plan.algorithms) {
      if (plan.all && algorithm && algorithm->why_not && !algorithm->why_not(group).empty()) continue;
      const AllReduceOptions options{.algorithm = algorithm};
      const std::int64_t bad = wrong(group, data, plan.reduction, options);
      if (data.count > 0) std::memset(data.data, 0, data.bytes());  // sums of zeros stay zeros, however often
      // A rank alone has nothing to do, and in a simulation that takes no time at all.
      const Seconds timing = timed(group, repeats, [&] { all_reduce(group, data, plan.reduction, options); });
      const double seconds = std::max(1e-12, timing.median);
      if (bad > 0 && speaks) fail("all-reduce gave {} wrong numbers of {}", bad, data.count);
      const Algorithm& taken = algorithm ? *algorithm : choose_all_reduce(group, data.bytes());
      const std::string name = algorithm ? std::string(taken.name) : fmt::format("auto ({})", taken.name);
      const double algbw = static_cast<double>(data.bytes()) / seconds / 1e9;
      const double busbw = algbw * 2 * (group.size() - 1) / group.size();
      const bool alone = group.size() == 1;  // nothing to do, and so no limit
      const double least = std::min(limit, timing.least), share = std::min(least, seconds) / seconds;
      if (!speaks) continue;
      if (s.json) {
        nlohmann::ordered_json out{{"bytes", data.bytes()},
                                   {"ranks", group.size()},
                                   {"world", world.place().world},
                                   {"algorithm", algorithm ? algorithm->name : "auto"},
                                   {"took", taken.name},
                                   {"type", s.type},
                                   {"op", s.op},
                                   {"time_us", seconds * 1e6},
                                   {"algbw_gbs", algbw},
                                   {"busbw_gbs", busbw},
                                   {"wrong", bad}};
        if (!alone) out["limit_us"] = least * 1e6, out["limit_share"] = share;
        fmt::print("{}\n", out.dump());
      } else {
        fmt::print("{:>12} {:>12} {:>8} {:>6} {:>20} {:>12.1f} {:>8.3f} {:>8.3f} {:>6} {:>6}\n", data.bytes(),
                   data.count, s.type, s.op, name, seconds * 1e6, algbw, busbw, bad,
                   alone ? "-" : fmt::format("{:.0f}%", 100 * share));
      }
      std::fflush(stdout);
    }
  }
}

void bench_collective(const CollectiveBenchSettings& s) {
  const CheckedBench plan = read(s);
  run_on_world(s.where, {}, [&](World& world) { measure(world, s, plan); });
}

}  // namespace

void add_bench_collective(Verb bench) {
  const Verb verb = bench.add_subcommand("collective", "Time of an all-reduce among ranks");
  auto s = std::make_shared<CollectiveBenchSettings>();
  s->where.workers = s->where.usual_workers = 2;
  verb.add_option("--ranks", s->where.workers, "How many ranks on this machine (the same as --workers)")
      .show_default()
      .range(1, 100000);
  verb.add_option("--bytes", s->bytes, "Sizes, separated by commas; K, M and G are powers of 1024")
      .separated_by(',')
      .show_default();
  verb.add_option("--algorithm", s->algorithms, "Names separated by commas, `auto` or `all`")
      .separated_by(',')
      .show_default();
  verb.add_option("--type", s->type, "float32, float64, int32 or int64").show_default();
  verb.add_option("--op", s->op, "sum, min, max or mean").show_default();
  verb.add_option("--repeats", s->repeats, "Repetitions of each (default: 2000 small, 200 large, 15 huge)")
      .range(1, 1000000);
  verb.add_flag("--own-memory", s->own_memory, "The numbers lie in each rank's own memory instead of in shared memory");
  verb.add_flag("--json", s->json, "Print one JSON object a line");
  add_world_flags(verb, s->where);
  verb.footer(
      "Examples:\n  echelon bench collective --world processes --ranks 2 --bytes 4096,1M,16M\n"
      "  echelon bench collective --ranks 4 --algorithm all --bytes 1M\n"
      "  echelon bench collective --ranks 2 --bytes 1M --link 100mbit,1ms\n"
      "  echelon bench collective --world sim --ranks 64 --algorithm all --bytes 64K --repeats 3");
  verb.action([s] { bench_collective(*s); });
}

}  // namespace echelon::cli
