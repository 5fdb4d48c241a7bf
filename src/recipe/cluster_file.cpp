#include "recipe/cluster_file.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/options.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

constexpr double gbit = 1e9 / 8, microsecond = 1e-6, longest = 1e9;
constexpr int most_ranks = 100'000;

class ClusterReader {
 public:
  ClusterReader(const Options& options, Problems& problems) : top_(options, problems) {}

  ClusterFile read() {
    auto switches = top_.tables("switches");
    auto machines = top_.tables("machines");
    if (top_.has("torus")) read_torus(top_.table("torus"), !switches.empty());
    for (auto& r : switches) read_switch(r);
    if (switches.empty()) add_switch("switch", 0, 1);
    if (machines.empty() && !top_.has("machines"))
      top_.problem("machines", "is missing: write [[machines]] and below it for example count = 4");
    for (auto& r : machines) read_machines(r);
    finish_uplinks();
    check_torus();
    read_faults(top_.table("faults"));
    top_.done();
    return std::move(file_);
  }

 private:
  void add_switch(const std::string& name, double latency, double oversubscription) {
    numbers_[name] = static_cast<int>(file_.cluster.switches.size());
    file_.cluster.switches.push_back({.name = name, .uplink = 0, .latency = latency});
    oversubscription_.push_back(oversubscription);
  }

  void read_switch(OptionReader& r) {
    r.require("name", "machines say with it where they are attached, for example name = \"rack1\"");
    const std::string name = r.text("name", "switch");
    if (numbers_.contains(name)) r.problem("name", fmt::format("= \"{}\" is taken; every switch has its own", name));
    add_switch(name, r.number("latency_us", 0, 0, longest) * microsecond, r.number("oversubscription", 1, 1e-6, 1e6));
    if (r.has("uplink_gbit")) {
      file_.cluster.switches.back().uplink = r.number("uplink_gbit", 1, 1e-9, 1e9) * gbit;
      if (r.has("oversubscription")) r.problem("uplink_gbit", "and oversubscription both say how fast it is; keep one");
    }
    r.done();
  }

  void read_torus(OptionReader r, bool has_switches) {
    SimCluster::Torus& torus = file_.cluster.torus;
    r.require("shape", "say how many machines it has along each dimension, for example shape = [16, 16]");
    for (const std::int64_t size : r.integers("shape", {}, 1, most_ranks)) {
      torus.shape.push_back(static_cast<int>(size));
      if (torus.machines() > most_ranks) r.problem("shape", fmt::format("has more than {} machines", most_ranks));
      if (torus.machines() > most_ranks) torus.shape.back() = 1;
    }
    torus.bandwidth = r.number("link_gbit", torus.bandwidth / gbit, 1e-9, 1e9) * gbit;
    torus.latency = r.number("latency_us", torus.latency / microsecond, 0, longest) * microsecond;
    r.done();
    if (has_switches) top_.problem("torus", "and [[switches]] both say how machines are connected; keep one");
  }

  void read_machines(OptionReader& r) {
    SimCluster::Machine m;
    const std::string name = r.text("name", "machine");
    const auto count = r.integer("count", 1, 1, most_ranks);
    m.ranks = static_cast<int>(r.integer("ranks", 1, 1, most_ranks));
    m.flops = r.number("gflops", m.flops / 1e9, 1e-9, 1e12) * 1e9;
    m.bandwidth = r.number("bandwidth_gbit", m.bandwidth / gbit, 1e-9, 1e9) * gbit;
    m.latency = r.number("latency_us", m.latency / microsecond, 0, longest) * microsecond;
    m.memory_bandwidth = r.number("memory_gbit", m.memory_bandwidth / gbit, 1e-9, 1e9) * gbit;
    m.memory_latency = r.number("memory_latency_us", m.memory_latency / microsecond, 0, longest) * microsecond;
    m.attached_to = read_attachment(r);
    for (const char* key : {"bandwidth_gbit", "latency_us"})
      if (has_torus() && r.has(key)) r.problem(key, "is of a NIC; the machines of a torus have wires: see [torus]");
    r.done();
    if (file_.cluster.ranks() + count * m.ranks > most_ranks) {
      r.problem("count", fmt::format("makes more than {} ranks in all, which cannot be simulated", most_ranks));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      m.name = count == 1 ? name : name + std::to_string(i);
      if (!machines_.emplace(m.name, static_cast<int>(file_.cluster.machines.size())).second)
        r.problem("name", fmt::format("makes a second machine \"{}\"; give these another name", m.name));
      file_.cluster.machines.push_back(m);
    }
  }

  int read_attachment(OptionReader& r) {
    const std::string first = file_.cluster.switches[0].name;
    const std::string name = r.text("switch", first);
    if (numbers_.size() > 1)
      r.require("switch", "there are several, say which one, for example switch = \"" + first + "\"");
    const auto it = numbers_.find(name);
    if (it != numbers_.end()) return it->second;
    std::string known;
    for (const auto& s : file_.cluster.switches) known += (known.empty() ? "" : ", ") + s.name;
    r.problem("switch", fmt::format("= \"{}\" is no switch of this file; there are: {}", name, known));
    return 0;
  }

  bool has_torus() const { return !file_.cluster.torus.shape.empty(); }
  void check_torus() {
    const std::int64_t places = file_.cluster.torus.machines();
    const auto machines = static_cast<std::int64_t>(file_.cluster.machines.size());
    if (has_torus() && machines > 0 && places != machines)
      top_.problem("torus", fmt::format("has {} places, and there are {} machines", places, machines));
  }

  // A switch without a speed of its own carries what its machines can send, divided by its oversubscription.
  void finish_uplinks() {
    std::vector<double> below(file_.cluster.switches.size(), 0);
    for (const auto& m : file_.cluster.machines) below[static_cast<std::size_t>(m.attached_to)] += m.bandwidth;
    for (std::size_t s = 0; s < below.size(); ++s)
      if (double& uplink = file_.cluster.switches[s].uplink; uplink <= 0)
        uplink = std::max(below[s], 1.0) / oversubscription_[s];
  }

  int read_rank(OptionReader& r) {
    r.require("rank", "say which one, for example rank = 0");
    return static_cast<int>(r.integer("rank", 0, 0, std::max(file_.cluster.ranks() - 1, 0)));
  }
  static void read_span(OptionReader& r, double& begin, double& end) {
    begin = r.number("begin", 0, 0, longest);
    end = r.has("end") ? r.number("end", 0, 0, longest) : FaultPlan::forever;
    if (end <= begin) r.problem("end", fmt::format("= {} is not after begin = {} (seconds)", end, begin));
  }
  std::vector<int> read_ranks(OptionReader& r, const char* key) {
    r.require(key, fmt::format("say which ranks, for example {} = [0, 1]", key));
    std::vector<int> out;
    for (const std::int64_t rank : r.integers(key, {}, 0, std::max(file_.cluster.ranks() - 1, 0)))
      out.push_back(static_cast<int>(rank));
    return out;
  }

  void read_faults(OptionReader r) {
    FaultPlan& f = file_.faults;
    const std::pair<const char*, double*> chances[] = {{"drop", &f.drop},       {"duplicate", &f.duplicate},
                                                       {"reorder", &f.reorder}, {"delay", &f.delay},
                                                       {"corrupt", &f.corrupt}, {"stale", &f.stale}};
    for (const auto& [key, chance] : chances) *chance = r.number(key, 0, 0, 1);
    f.reorder_seconds = r.number("reorder_seconds", f.reorder_seconds, 0, longest);
    f.delay_seconds = r.number("delay_seconds", f.delay_seconds, 0, longest);
    read_span(r, f.begin, f.end);
    for (auto& c : r.tables("crash")) {
      const int rank = read_rank(c);
      c.require("at", "say when, for example at = 1.5 (seconds)");
      f.crashes.push_back({.rank = rank, .at = c.number("at", 0, 0, longest), .power = c.flag("power", false)});
      c.done();
    }
    for (auto& c : r.tables("pause")) {
      const int rank = read_rank(c);
      c.require("seconds", "say for how long, for example seconds = 10");
      f.pauses.push_back({rank, c.number("at", 0, 0, longest), c.number("seconds", 0, 0, longest)});
      c.done();
    }
    for (auto& c : r.tables("slow")) {
      FaultPlan::Slow slow{.rank = read_rank(c), .factor = c.number("factor", 2, 1e-6, 1e6)};
      read_span(c, slow.begin, slow.end);
      f.slow.push_back(slow);
      c.done();
    }
    for (auto& c : r.tables("partition")) {
      FaultPlan::Partition cut{
          .one = read_ranks(c, "one"), .other = read_ranks(c, "other"), .one_way = c.flag("one_way", false)};
      read_span(c, cut.begin, cut.end);
      for (const int rank : cut.one)
        if (std::find(cut.other.begin(), cut.other.end(), rank) != cut.other.end())
          c.problem("other", fmt::format("names rank {}, which is in one as well; a rank stands on one side", rank));
      f.partitions.push_back(std::move(cut));
      c.done();
    }
    for (auto& c : r.tables("disk_full")) {
      FaultPlan::DiskFull full;
      c.require("machine", "say whose disk, by the machine's name");
      const std::string name = c.text("machine", "");
      const auto it = machines_.find(name);
      if (it != machines_.end()) full.machine = it->second;
      if (it == machines_.end() && c.has("machine"))
        c.problem(
            "machine",
            fmt::format("= \"{}\" is no machine of this file; with count = 4, name = \"a\" makes a0 to a3", name));
      read_span(c, full.begin, full.end);
      f.full_disks.push_back(full);
      c.done();
    }
    r.done();
  }

  OptionReader top_;
  ClusterFile file_;
  std::map<std::string, int> numbers_, machines_;  // of switches and of machines, by name
  std::vector<double> oversubscription_;
};

}  // namespace

ClusterFile parse_cluster(std::string_view text, const std::string& file) {
  const Options options = parse_toml(text, file);
  Problems problems;
  ClusterFile out = ClusterReader(options, problems).read();
  problems.throw_if_any(file);
  check(out.cluster);
  check(out.faults, out.cluster.ranks(), static_cast<int>(out.cluster.machines.size()));
  return out;
}

ClusterFile read_cluster(Disk& disk, const std::string& path) {
  if (!disk.exists(path) || disk.is_directory(path)) bad_input("{}: there is no such cluster file", path);
  return parse_cluster(read_text(disk, path, TomlLimits{}.bytes), path);
}

}  // namespace echelon
