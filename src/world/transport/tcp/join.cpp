#include "world/transport/tcp/join.h"

#include <unistd.h>

#include "world/os/host.h"
#include "world/os/host_identity.h"
#include "world/os/tasks.h"
#include "world/transport/memory/segment.h"
#include "world/transport/processes/children.h"
#include "world/transport/rank_result.h"
#include "world/transport/tcp/read_options.h"
#include "world/transport/tcp/tcp_world.h"

namespace echelon {

namespace {

using asio::ip::tcp;
using namespace echelon::tcp;  // NOLINT: this file is the interface of that namespace

// A socket bound to a port of its own, for a rank that will listen there; nobody can connect to it before. Whoever gets
// the number must close it.
int bind_anywhere(const asio::ip::address& address, std::uint16_t& port) {
  asio::io_context io;
  std::error_code error;
  tcp::acceptor acceptor(io);
  const tcp::endpoint at(address, 0);
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.bind(at, error);
  if (error) bad_input("cannot listen at {}: {}", address.to_string(), error.message());
  port = acceptor.local_endpoint().port();
  return acceptor.release();
}

struct Node {
  JobTable table;
  Credentials credentials;
  NodeOffer offer;
  std::vector<int> listeners;
  HeldAddress held;
};

Node bind_node(const TcpOptions& options, const LaunchOptions& launch, bool alone) {
  check_options(options, alone);
  Node node;
  node.credentials = make_credentials(options, alone);
  const auto address = bind_address(options);
  node.offer.host_id = host_identity();
  node.offer.seed = launch.seed;
  if (!address.is_unspecified()) node.offer.address = address.to_string();
  for (int i = 0; i < options.per_node; ++i)
    node.listeners.push_back(bind_anywhere(address, node.offer.ports.emplace_back()));
  return node;
}

Node gather_node(const TcpOptions& options, const LaunchOptions& launch, bool alone) {
  Node node = bind_node(options, launch, alone);
  if (alone) {
    NodeOffer here = node.offer;
    if (here.address.empty()) here.address = "127.0.0.1";
    node.table = table_of({here}, 0, make_nonce());
    return node;
  }
  const HostAndPort endpoint = parse_endpoint(options.endpoint);
  RendezvousOptions meeting;
  meeting.host = endpoint.host;
  meeting.port = endpoint.port;
  meeting.node_rank = options.node_rank;
  meeting.min_nodes = options.min_nodes;
  meeting.max_nodes = options.max_nodes;
  meeting.join_seconds = options.join_seconds;
  meeting.last_call_seconds = options.last_call_seconds;
  meeting.say = options.say;
  meeting.job_id = options.job_id;
  Meeting met = meet(meeting, node.credentials, node.offer);
  node.table = std::move(met.table);
  node.held = std::move(met.held);
  return node;
}

RankConfig config_of(const Node& node, const TcpOptions& options, const LaunchOptions& launch, int local) {
  RankConfig config;
  config.rank = node.table.first_rank + local;
  config.table = node.table;
  config.listener = node.listeners[static_cast<std::size_t>(local)];
  config.credentials = node.credentials;
  config.silence_seconds = options.silence_seconds;
  config.share_memory = options.share_memory;
  config.launch = launch;
  return config;
}

RankEnvironment place_of(const Node& node, const TcpOptions& options, int local) {
  RankEnvironment place;
  place.rank = node.table.first_rank + local;
  place.size = static_cast<int>(node.table.peers.size());
  place.local_rank = local;
  place.local_size = options.per_node;
  if (options.max_nodes > 1 && !options.etcd) {
    const HostAndPort endpoint = parse_endpoint(options.endpoint);
    place.master_address = endpoint.host;
    place.master_port = endpoint.port;
  }
  return place;
}

// Runs a rank of this machine and records its failure. A rank that only heard of the loss of another rank of this
// machine leaves the record to that one, or to the parent, which know more.
void live(Segment& status, int first_rank, int local, const std::function<void()>& body) {
  const int me = first_rank + local;
  try {
    body();
  } catch (const PeerLost& e) {
    const bool here = e.rank() >= first_rank && e.rank() < first_rank + status.ranks();
    // If neither records anything for a while (that rank stands still, but lives), this is what is known.
    for (int i = 0; here && e.rank() != me && i < 100 && !status.failure().known(); ++i) sleep_really(0.01);
    if (!status.failure().known()) status.fail_world(e.rank(), e.reason(), e.kind());
  } catch (const std::exception& e) {
    status.fail_world(me, e.what(), kind_of(e));
  } catch (...) {
    status.fail_world(me, "it threw something that is no exception");
  }
  status.rank(local).ended.store(1, std::memory_order_release);
}

void run_node(const Node& node, const TcpOptions& options, const LaunchOptions& launch, const Program& program) {
  // Records the first failure on this machine; the ranks' messages do not go through it.
  const auto status = Segment::create(Segment::Reach::machine, options.per_node, 1 << 20);
  ChildOptions children{.first_rank = node.table.first_rank,
                        .grace_seconds = launch.grace_seconds,
                        .hears_signals = launch.hears_signals,
                        .on_death = launch.on_death,
                        .on_signal = launch.on_signal,
                        .go_on = launch.go_on};
  // Each child has its own; a copy here would keep the port open when the child has closed it.
  children.started = [&] {
    for (const int s : node.listeners) ::close(s);
  };
  run_children(*status, children, [&](int local) {
    for (int i = 0; i < options.per_node; ++i) {
      if (i != local) ::close(node.listeners[static_cast<std::size_t>(i)]);
    }
    set_environment(torchrun_variables(place_of(node, options, local)));
    RankConfig config = config_of(node, options, launch, local);
    config.neighbours = &status->failure();
    live(*status, node.table.first_rank, local, [&] { run_rank(config, program); });
  });
  status->failure().throw_to_launcher();
}

}  // namespace

void run_on_tcp(const TcpOptions& options, const LaunchOptions& launch, const Program& program) {
  run_node(gather_node(options, launch, options.max_nodes == 1), options, launch, program);
}

struct TcpNode::State {
  TcpOptions options;
  LaunchOptions launch;
  Node node;
  bool closed = false;
};

TcpNode::TcpNode(const TcpOptions& options, const LaunchOptions& launch)
    : state_(new State{options, launch, bind_node(options, launch, false)}) {
  if (state_->node.offer.address.empty())
    bad_input("nodes that come and go are found at one address: give --bind this machine's, not {}", options.bind);
}
TcpNode::~TcpNode() {
  if (!state_->closed)
    for (const int s : state_->node.listeners) ::close(s);
}

const NodeOffer& TcpNode::offer() const { return state_->node.offer; }

void TcpNode::run(const JobTable& table, const Program& program) {
  state_->node.table = table;
  state_->closed = true;
  run_node(state_->node, state_->options, state_->launch, program);
}

void join_tcp(const TcpOptions& given, const RankEnvironment& place, const LaunchOptions& launch,
              const Program& program) {
  TcpOptions options = given;
  const TcpOptions defaults;
  if (!place.master_address.empty() && given.endpoint == defaults.endpoint) {  // nobody has said where
    const bool v6 = place.master_address.find(':') != std::string::npos;
    const int port = place.master_port != 0 ? place.master_port : parse_endpoint(defaults.endpoint).port;
    options.endpoint = fmt::format("{}{}{}:{}", v6 ? "[" : "", place.master_address, v6 ? "]" : "", port);
  }
  options.min_nodes = options.max_nodes = place.size;
  options.node_rank = place.rank;
  options.per_node = 1;
  const Node node = gather_node(options, launch, place.size == 1);
  as_rank(place.rank, [&] { run_rank(config_of(node, options, launch, 0), program); });
}

void make_job_secret_file(const std::string& path) { write_secret_file(path, make_secret()); }

}  // namespace echelon
