#include "cli/training/world_flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "cli/training/experiment_flags.h"
#include "recipe/cluster_file.h"
#include "world/alone.h"
#include "world/os/cores.h"
#include "world/os/environment.h"
#include "world/sim/simulation.h"
#include "world/transport/mpi/join.h"

namespace echelon::cli {

namespace {

int ranks_here(const WorldFlags& flags) { return flags.workers * flags.ranks_each; }

int read_count(std::string_view text, const std::string& all) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 100000)
    bad_input("--nnodes is a number of machines or MIN:MAX, not '{}'", all);
  return value;
}

// Whoever started this process, it is the launcher of a machine that comes and goes.
bool launches_nodes(const WorldFlags& flags) { return flags.nodes.find(':') != std::string::npos; }

std::string choose(const WorldFlags& flags, const RankEnvironment& place) {
  const bool started = !launches_nodes(flags) && (started_by_mpi() || (place.known() && place.size > 1));
  if (started && (flags.world.empty() || flags.world == "mpi" || flags.world == "tcp")) {
    if ((flags.workers != flags.usual_workers && flags.workers != place.size) || flags.nodes != "1")
      bad_input("{} has started this process as rank {} of {}: leave out --workers and --nnodes",
                place.known() ? place.from : "MPI", place.rank, place.size);
    if (flags.world.empty()) return started_by_mpi() ? "mpi" : "tcp";
  }
  if (flags.world == "mpi" && !started)
    bad_input("--world mpi is for processes that mpirun or srun has started: mpirun -np {} echelon ...", flags.workers);
  const bool network = flags.nodes != "1" || flags.tcp.node_rank >= 0 || flags.tcp.insecure || flags.tcp.tls ||
                       flags.tcp.bind != TcpOptions().bind || flags.tcp.endpoint != TcpOptions().endpoint;
  if (network && !flags.world.empty() && flags.world != "tcp")
    bad_input("--nnodes, --node-rank, --rdzv-endpoint, --bind, --tls and --insecure are for --world tcp, not {}",
              flags.world);
  if (network && flags.standalone)
    bad_input("--standalone is for this machine alone: leave it out, or the flags of several machines");
  if (flags.tcp.tls && flags.tcp.insecure) bad_input("--tls and --insecure contradict each other: leave one out");
  if (!flags.cluster.empty() && flags.world != "sim")
    bad_input("--cluster describes a simulated cluster: say --world sim, or leave it out");
  if (!flags.world.empty()) return flags.world;
  if (network) return "tcp";
  return ranks_here(flags) > 1 ? "processes" : "alone";
}

ClusterFile sim_cluster(const WorldFlags& flags) {
  if (flags.cluster.empty())
    return {.cluster = SimCluster::uniform(flags.workers, flags.link.latency > 0 ? flags.link.latency : 10e-6,
                                           flags.link.bytes_per_second > 0 ? flags.link.bytes_per_second : 1.25e9),
            .faults = {}};
  if (!flags.link_text.empty())
    bad_input("{} says how fast its links are: leave out --link {}, or change the file", flags.cluster,
              flags.link_text);
  ClusterFile file = read_cluster(*make_real_disk(), flags.cluster);
  if (flags.workers > 1 && flags.workers != file.cluster.ranks())
    bad_input("{} has {} ranks: leave out --workers {}", flags.cluster, file.cluster.ranks(), flags.workers);
  return file;
}

// Which events of the plan have happened; a run in which one did not has not shown what it was to show.
void tell_faults(const FaultPlan& plan, const SimReport& report) {
  const FaultAccount account = account_for(plan, report.fired);
  for (const std::string& fault : account.fired) fmt::print(stderr, "planned fault: {}: happened\n", fault);
  for (const std::string& fault : account.unfired) fmt::print(stderr, "planned fault: {}: did not happen\n", fault);
  report.throw_if_failed();
  if (!account.unfired.empty())
    fail("{} of {} planned faults did not happen before the end at {:.6g} s: {}", account.unfired.size(),
         account.unfired.size() + account.fired.size(), report.seconds, fmt::join(account.unfired, "; "));
}

void check_stragglers(const WorldFlags& flags, int ranks) {
  for (std::size_t i = 0; i < flags.stragglers.size(); ++i)
    if (flags.stragglers[i].rank >= ranks)
      bad_input("--straggler {}: there is no rank {} among {} worker{}, they count from 0", flags.straggler_texts[i],
                flags.stragglers[i].rank, ranks, ranks == 1 ? "" : "s");
}

}  // namespace

TcpOptions tcp_options(const WorldFlags& flags) {
  TcpOptions o = flags.tcp;
  const std::size_t colon = flags.nodes.find(':');
  o.min_nodes = read_count(std::string_view(flags.nodes).substr(0, colon), flags.nodes);
  o.max_nodes = colon == std::string::npos ? o.min_nodes
                                           : read_count(std::string_view(flags.nodes).substr(colon + 1), flags.nodes);
  if (o.max_nodes < o.min_nodes) bad_input("--nnodes {}: the most is less than the least", flags.nodes);
  if (flags.backend != "launcher" && flags.backend != "etcd")
    bad_input("--rdzv-backend is launcher (the first machine holds it) or etcd, not '{}'", flags.backend);
  o.etcd = flags.backend == "etcd";
  o.per_node = ranks_here(flags);
  o.say = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
  return o;
}

std::string WorldFlags::command() const {
  std::string text;
  if (workers > 1) text += fmt::format(" --workers {}", workers);
  if (!world.empty()) text += " --world " + world;
  if (nodes != "1") text += fmt::format(" --nnodes {} --rdzv-endpoint {}", nodes, tcp.endpoint);
  if (backend != "launcher") text += " --rdzv-backend " + backend;
  if (!cluster.empty()) text += " --cluster " + cluster;
  if (cores > 0 && !cores_chosen) text += fmt::format(" --cores {}", cores);
  if (tcp.silence_seconds != TcpOptions().silence_seconds) text += fmt::format(" --lost-after {}", tcp.silence_seconds);
  if (stopped_after != WorldFlags().stopped_after) text += fmt::format(" --stopped-after {}", stopped_after);
  if (!link_text.empty()) text += " --link " + link_text;
  if (!byzantine_text.empty()) text += " --byzantine " + byzantine_text;
  for (const std::string& straggler : straggler_texts) text += " --straggler " + straggler;
  return text;
}

std::vector<std::string> given_words(const std::vector<Flag>& flags) {
  std::vector<std::string> words;
  for (const Flag flag : flags) {
    if (!flag.given()) continue;
    if (flag.is_switch())
      words.push_back(flag.name());
    else
      for (const std::string& value : flag.values()) words.insert(words.end(), {flag.name(), value});
  }
  return words;
}

void make_cores_ranks(WorldFlags& flags) {
  const RankEnvironment place = read_rank_environment();
  const std::string world = choose(flags, place);
  const bool starts = world != "mpi" && world != "sim" &&
                      !(world == "tcp" && !launches_nodes(flags) && place.known() && place.size > 1);
  if (starts && flags.cores > 1) flags.ranks_each = flags.cores;
}

int cores_asked(const WorldFlags& flags) { return flags.ranks_each > 1 ? 1 : flags.cores; }

int cores_each(const WorldFlags& flags, const World& world) {
  if (cores_asked(flags) > 0) return cores_asked(flags);
  if (!world.place().threads) return 1;
  const std::vector<int>& host = world.place().host;
  const auto here = std::ranges::count(host, host[static_cast<std::size_t>(world.rank())]);
  return std::max(1, available_cores() / static_cast<int>(here));
}

std::string in_words(const WorldFlags& flags, const World& world) {
  const int each = cores_each(flags, world);
  const int there = available_cores();
  const std::string on = fmt::format(
      "{} core{}{}", each, each == 1 ? "" : "s",
      each > there && flags.world != "sim" ? fmt::format(" (more than the {} of this machine: no faster)", there) : "");
  if (world.size() == 1) return on;
  return fmt::format("{} workers ({}) with {} each", world.size(), world.place().world, on);
}

std::vector<Flag> add_world_flags(Verb verb, WorldFlags& f) {
  const auto before = static_cast<std::ptrdiff_t>(verb.flags().size());
  const char* group = "Workers";
  verb.add_option("--workers,--nproc-per-node", f.workers,
                  "Workers on this machine; the result depends on it only under a --system other than bsp")
      .show_default()
      .range(1, 100000)
      .group(group);
  verb.add_option(
          "--world", f.world,
          "What the workers are: threads, processes (the default), tcp, mpi or sim (simulated, on virtual time)")
      .one_of({"threads", "processes", "tcp", "mpi", "sim"})
      .group(group);
  verb.add_option("--cores", f.cores,
                  "Cores of each worker; the result does not depend on it (default: all, shared out)")
      .range(1, 1024)
      .group(group);
  verb.add_option("--cluster", f.cluster,
                  "sim: the file that describes machines, links and faults (docs/simulation.md)")
      .group(group);
  verb.add_text(
          "--link",
          [&f](const std::string& text) {
            f.link = read_link(text);
            f.link_text = text;
            std::erase(f.link_text, ' ');  // one word of the command that goes on with a run
          },
          "An experiment: every worker's link has only this speed, and latency if you like: 100mbit or 100mbit,1ms")
      .group(group);
  verb.add_option("--lost-after", f.tcp.silence_seconds,
                  "tcp, sim: seconds without a sign of life after which a worker is lost")
      .show_default()
      .range(0.1, 86400.0)
      .group(group);
  verb.add_option("--stopped-after", f.stopped_after,
                  "Seconds to wait for a worker that lives but does not get on (stopped, or stuck)")
      .show_default()
      .range(0.1, 86400.0)
      .group(group);
  const char* network = "Several machines (docs/cluster.md, docs/security.md)";
  verb.add_option("--nnodes", f.nodes, "Machines: N, or MIN:MAX").show_default().group(network);
  verb.add_flag("--standalone", f.standalone, "This machine alone, as without any of these flags").group(network);
  verb.add_text(
          "--master-addr",
          [&f](const std::string& text) { f.tcp.endpoint = text + f.tcp.endpoint.substr(f.tcp.endpoint.rfind(':')); },
          "The host of --rdzv-endpoint")
      .group(network);
  verb.add_text(
          "--master-port",
          [&f](const std::string& text) {
            f.tcp.endpoint = f.tcp.endpoint.substr(0, f.tcp.endpoint.rfind(':')) + ":" + text;
          },
          "The port of --rdzv-endpoint")
      .group(network);
  verb.add_option("--rdzv-endpoint", f.tcp.endpoint, "Where they meet: the first machine's HOST:PORT")
      .show_default()
      .group(network);
  verb.add_option("--rdzv-backend", f.backend,
                  "Where machines that come and go (--nnodes MIN:MAX) agree: launcher, at the endpoint, or etcd (its "
                  "members' HOST:PORT,...)")
      .show_default()
      .one_of({"launcher", "etcd"})
      .group(network);
  verb.add_flag(
          "--transient", f.tcp.transient,
          "With --nnodes MIN:MAX: this machine may be taken away (a spot machine), so reliable ones get the first "
          "ranks, which hold the servers")
      .group(network);
  verb.add_option("--rdzv-id", f.tcp.job_id, "The job's name").show_default().group(network);
  verb.add_option("--node-rank", f.tcp.node_rank, "This machine's number; 0 listens at the endpoint (default: any)")
      .not_negative()
      .group(network);
  verb.add_option("--bind", f.tcp.bind, "The address at which this machine's workers listen")
      .show_default()
      .group(network);
  verb.add_option("--secret-file", f.tcp.secret_file,
                  "The job's secret, mode 0600 (`echelon secret FILE` makes one; default: $ECHELON_SECRET)")
      .group(network);
  verb.add_flag("--tls", f.tcp.tls, "Encrypt on loopback too").group(network);
  verb.add_flag("--insecure", f.tcp.insecure, "Do not encrypt between machines either").group(network);
  const std::vector<Flag> all = verb.flags();
  return {all.begin() + before, all.end()};
}

std::vector<Flag> add_trouble_flags(Verb verb, WorldFlags& f) {
  const Flag straggler = verb.add_texts(
                                 "--straggler",
                                 [&f](const std::vector<std::string>& texts) {
                                   for (const std::string& text : texts) f.stragglers.push_back(read_straggler(text));
                                   f.straggler_texts = texts;
                                 },
                                 "An experiment: a slow worker, rank=2,factor=4; or now and then any, "
                                 "rank=any,factor=4,chance=0.1. May be "
                                 "said again")
                             .one_each_time()
                             .group("Workers");
  const Flag byzantine =
      verb.add_texts(
              "--byzantine",
              [&f](const std::vector<std::string>& texts) {
                f.byzantine_text = texts.front();
                f.byzantine = read_byzantine(texts.front());
              },
              "An experiment: the last workers lie about their gradients, 2:sign_flip (random, scaled, sign_flip, "
              "label_flip, little_is_enough, colluding), with a strength 2:scaled:50")
          .group("Workers");
  return {straggler, byzantine};
}

ExpectedWorld expected_world(const WorldFlags& flags) {
  const std::string world = choose(flags, read_rank_environment());
  ExpectedWorld e{.workers = ranks_here(flags), .shares_memory = world != "sim" && flags.link_text.empty()};
  e.simulated = world == "sim";
  if (e.simulated) e.workers = sim_cluster(flags).cluster.ranks();
  if (world == "tcp") {
    const TcpOptions o = tcp_options(flags);
    e.workers = o.min_nodes * o.per_node;
    e.shares_memory = e.shares_memory && o.max_nodes == 1;
  }
  check_stragglers(flags, e.workers);
  return e;
}

int known_workers(const WorldFlags& flags) {
  const RankEnvironment place = read_rank_environment();
  const std::string world = choose(flags, place);
  if (world == "mpi") return 0;
  if (world == "tcp" && !launches_nodes(flags) && place.known() && place.size > 1) return place.size;
  if (world == "tcp")
    if (const TcpOptions o = tcp_options(flags); o.max_nodes != o.min_nodes) return 0;
  return expected_world(flags).workers;
}

void run_on_world(const WorldFlags& flags, const LaunchOptions& options, const Program& given) {
  const RankEnvironment place = read_rank_environment();
  const std::string world = choose(flags, place);
  const Program program = [&](World& inner) {
    check_stragglers(flags, inner.size());
    if (flags.link_text.empty() || world == "sim") return given(inner);  // a simulated network has such links
    given(*make_metered(inner, flags.link));
  };
  if (world == "alone") {
    const auto alone = make_world_alone(options.seed);
    program(*alone);
  } else if (world == "threads") {
    run_in_threads(ranks_here(flags), options, program);
  } else if (world == "processes") {
    run_in_processes(ranks_here(flags), options, program);
  } else if (world == "sim") {
    if (flags.cores > 1)
      bad_input("a simulated worker has one core, as fast as the cluster file says: leave out --cores");
    const ClusterFile file = sim_cluster(flags);
    const SimReport report = run_in_simulation(
        file.cluster, {.seed = options.seed, .faults = file.faults, .detection_seconds = flags.tcp.silence_seconds},
        program);
    tell_faults(file.faults, report);
  } else if (world == "mpi") {
    join_mpi(options, program);
  } else if (place.known() && place.size > 1) {
    join_tcp(tcp_options(flags), place, options, program);
  } else {
    run_on_tcp(tcp_options(flags), options, program);
  }
}

}  // namespace echelon::cli
