// `echelon join`, `leave` and `status`: a machine that joins a job of machines that come and go, leaves it, or looks.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_status.h"
#include "cli/training/elastic_nodes.h"
#include "cli/verbs.h"
#include "member/membership.h"
#include "recipe/toml.h"
#include "track/run.h"
#include "world/os/folder_disk.h"
#include "world/os/host.h"
#include "world/os/host_identity.h"

namespace echelon::cli {

namespace {

struct JobSettings {
  WorldFlags world;
  std::string node;  // leave: which; empty: those of this machine
  bool json = false;
};

void add_job_flags(Verb verb, JobSettings& s, const char* where = "Where the job's machines meet: HOST:PORT") {
  verb.add_option("endpoint", s.world.tcp.endpoint, where).required();
  verb.add_option("--rdzv-backend", s.world.backend, "What is there: the job's launcher, or etcd")
      .show_default()
      .one_of({"launcher", "etcd"});
  verb.add_option("--rdzv-id", s.world.tcp.job_id, "The job's name").show_default();
  verb.add_option("--secret-file", s.world.tcp.secret_file, "The job's secret (default: $ECHELON_SECRET)");
  verb.add_option("--bind", s.world.tcp.bind, "This machine's address").show_default();
}

TcpOptions options_of(const JobSettings& s) {
  WorldFlags flags = s.world;
  flags.nodes = "1:2";  // several; how many, the job says
  return tcp_options(flags);
}

Membership membership_of(Store& store, const TcpOptions& options, std::uint64_t& revision) {
  const Store::Entry entry = store.read(job_prefix(options) + "members");
  revision = entry.revision;
  if (revision == 0) bad_input("no job '{}' at {}: nobody has joined it yet", options.job_id, options.endpoint);
  return read_membership(entry.text);
}

void join(const JobSettings& s) {
  const TcpOptions options = options_of(s);
  const PublishedRecipe job = read_published(*open_job_store(options), options);
  TrainSettings t;
  t.world = s.world;
  t.world.nodes = fmt::format("{}:{}", job.least, std::max(job.most, job.least));
  t.recipe = job.name + ".toml";
  t.tree = parse_toml(job.toml, "the job's recipe");
  t.plan = job.plan;
  t.check_replicas = job.check_replicas;
  t.replayed = job.changes;
  t.json = s.json;
  train_recipe(t);
}

void leave(const JobSettings& s) {
  const TcpOptions options = options_of(s);
  const auto store = open_job_store(options);
  for (int tries = 0; tries < 100; ++tries) {
    std::uint64_t revision = 0;
    Membership m = membership_of(*store, options, revision);
    std::vector<std::string> leaving;
    for (MemberNode& n : m.nodes)
      if (s.node.empty() ? n.offer.host_id == host_identity() : n.id == s.node)
        n.leaving = true, leaving.push_back(n.id);
    if (m.over) bad_input("the job '{}' at {} is over", options.job_id, options.endpoint);
    if (leaving.empty()) {
      std::string all;
      for (const MemberNode& n : m.nodes) all += (all.empty() ? "" : ", ") + n.id;
      bad_input("{} is not in the job '{}'; those who are: {}", s.node.empty() ? "this machine" : s.node,
                options.job_id, all);
    }
    if (!store->write_if(job_prefix(options) + "members", revision, write_membership(m))) continue;
    if (s.json) return fmt::print("{}\n", nlohmann::ordered_json{{"leaving", leaving}}.dump());
    for (const std::string& id : leaving) fmt::print("{} leaves after the step that is open\n", id);
    return;
  }
  fail("the membership of the job '{}' changes so quickly that nothing could be written", options.job_id);
}

void show(const JobSettings& s) {
  const TcpOptions options = options_of(s);
  const auto store = open_job_store(options);
  std::uint64_t revision = 0;
  const Membership m = membership_of(*store, options, revision);
  const std::vector<std::string> leases = store->list(job_prefix(options) + "node/");
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const MemberNode& n : m.nodes) {
    const bool lives = std::ranges::find(leases, job_prefix(options) + "node/" + n.id) != leases.end();
    const std::string state = !lives ? "lost" : n.leaving ? "leaving" : m.has(n) ? "training" : "waiting";
    nodes.push_back({{"id", n.id},
                     {"state", state},
                     {"workers", n.offer.ports.size()},
                     {"transient", n.transient},
                     {"address", n.offer.address},
                     {"step", n.step}});
  }
  const std::string state = m.over ? "over" : m.running() > 0 ? "training" : "waiting";
  if (s.json)
    return fmt::print("{}\n", nlohmann::ordered_json{{"job", options.job_id},
                                                     {"state", state},
                                                     {"outcome", m.outcome},
                                                     {"generation", m.generation},
                                                     {"began_with_step", m.step},
                                                     {"nodes", nodes}}
                                  .dump());
  fmt::print("job {}: {}{}, generation {}, which began with step {}; {} to {} machines\n", options.job_id, state,
             m.outcome.empty() ? "" : " (" + m.outcome + ")", m.generation, std::max<std::int64_t>(0, m.step), m.least,
             m.most);
  for (const auto& n : nodes)
    fmt::print("  {:<32} {:<9} {} worker(s) at {}\n", n["id"].get<std::string>(), n["state"].get<std::string>(),
               n["workers"].get<int>(), n["address"].get<std::string>());
}

}  // namespace

void add_join(Verb program) {
  const Verb verb = program.add_subcommand("join", "Join a job whose machines come and go, and train what it trains");
  auto s = std::make_shared<JobSettings>();
  add_job_flags(verb, *s);
  verb.add_option("--workers", s->world.workers, "Workers on this machine").show_default().range(1, 1024);
  verb.add_option("--cores", s->world.cores, "Cores of each worker (default: all, shared out)").range(1, 1024);
  verb.add_flag("--transient", s->world.tcp.transient,
                "This machine may be taken away (a spot machine): reliable ones hold the servers");
  verb.add_flag("--json", s->json, "Print one JSON object with the result, if rank 0 is here at the end");
  verb.footer(
      "Examples:\n"
      "  echelon join 10.0.0.1:29400 --secret-file job.secret --bind 10.0.0.3\n"
      "  echelon join 10.0.0.1:2379,10.0.0.2:2379 --rdzv-backend etcd --rdzv-id demo --workers 4\n"
      "Ctrl-C or SIGTERM: the machine leaves after the step that is open.");
  verb.action([s] { join(*s); });
}

void add_leave(Verb program) {
  const Verb verb = program.add_subcommand("leave", "Let a machine leave a job after the step that is open");
  auto s = std::make_shared<JobSettings>();
  add_job_flags(verb, *s);
  verb.add_option("--node", s->node, "Which, as `echelon status` names it (default: this machine)");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer("Examples:\n  echelon leave 10.0.0.1:29400 --secret-file job.secret");
  verb.action([s] { leave(*s); });
}

void add_status(Verb program) {
  const Verb verb = program.add_subcommand("status", "What the workers of a run do now; the machines of a job");
  auto s = std::make_shared<JobSettings>();
  add_job_flags(verb, *s, "A run, or where the job's machines meet: HOST:PORT");
  auto root = std::make_shared<std::string>("runs");
  verb.add_option("--root", *root, "Where runs are").show_default();
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "A run on this machine, by its folder or name, or a job whose machines come and go, by HOST:PORT.\n"
      "Examples:\n"
      "  echelon status demo-1        each worker: what it does, for whom it waits; what is wrong, if something is\n"
      "  echelon status 10.0.0.1:29400 --secret-file job.secret");
  verb.action([s, root] {
    const auto disk = make_real_disk();
    const std::string& job = s->world.tcp.endpoint;
    if (job.find(':') != std::string::npos && !disk->is_directory(job)) return show(*s);
    show_status(open_run(*disk, *root, job).path, s->json);
  });
}

}  // namespace echelon::cli
