#include "world/transport/tcp/join.h"

#include <unistd.h>

#include <charconv>
#include <optional>

#include "world/os/host.h"
#include "world/os/host_identity.h"
#include "world/os/tasks.h"
#include "world/transport/memory/segment.h"
#include "world/transport/processes/children.h"
#include "world/transport/rank_result.h"
#include "world/transport/tcp/tcp_world.h"

namespace echelon {

namespace {

using asio::ip::tcp;
using namespace echelon::tcp;  // NOLINT: this file is the interface of that namespace

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

HostAndPort parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  HostAndPort e;
  if (colon != std::string::npos) {
    e.host = text.substr(0, colon);
    if (e.host.size() > 2 && e.host.front() == '[' && e.host.back() == ']')
      e.host = e.host.substr(1, e.host.size() - 2);
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, e.port);
    if (parsed.ec == std::errc{} && parsed.ptr == end && e.port != 0 && !e.host.empty()) return e;
  }
  bad_input("the rendezvous endpoint '{}' is not of the form host:port", text);
}

bool is_loopback(const std::string& host) {
  std::error_code error;
  const auto address = asio::ip::make_address(host, error);
  return error ? host == "localhost" : address.is_loopback();
}

asio::ip::address bind_address(const TcpOptions& options) {
  std::error_code error;
  const auto address = asio::ip::make_address(options.bind == "localhost" ? "127.0.0.1" : options.bind, error);
  if (error) bad_input("'{}' is no address to listen at: give a number such as 10.0.0.2", options.bind);
  return address;
}

void check(const TcpOptions& o, bool alone) {
  std::string problems;
  const auto complain = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  if (o.min_nodes < 1 || o.max_nodes < o.min_nodes) {
    complain(fmt::format("{}:{} nodes: expected 1 <= least <= most", o.min_nodes, o.max_nodes));
  }
  if (o.per_node < 1) complain(fmt::format("{} ranks on a node: at least 1", o.per_node));
  if (o.node_rank >= o.max_nodes) complain(fmt::format("node rank {} of at most {} nodes", o.node_rank, o.max_nodes));
  if (!alone && !is_loopback(parse_endpoint(o.endpoint).host) && bind_address(o).is_loopback()) {
    complain(
        fmt::format("the nodes meet at {}, but the ranks of this one would listen at {}, where no other machine can "
                    "reach them: bind to this machine's address",
                    o.endpoint, o.bind));
  }
  if (!problems.empty()) bad_input("{}", problems);
}

std::optional<Secret> given_secret(const TcpOptions& options) {
  if (!options.secret_file.empty()) return read_secret_file(options.secret_file);
  const std::string value = environment("ECHELON_SECRET");
  if (value.empty()) return std::nullopt;
  return parse_secret(value, "ECHELON_SECRET");
}

Credentials make_credentials(const TcpOptions& options, bool alone) {
  const bool leaves =
      !bind_address(options).is_loopback() || (!alone && !is_loopback(parse_endpoint(options.endpoint).host));
  Credentials credentials;
  const auto secret = given_secret(options);
  if (!secret && !(alone && !leaves)) {
    bad_input(
        "the processes of this job need a common secret: `echelon secret job.secret` makes one; copy the "
        "file to every machine and name it with --secret-file, or put its text into ECHELON_SECRET");
  }
  credentials.secret = secret ? *secret : make_secret();
  credentials.job = sha256(options.job_id);
  if (options.tls || (leaves && !options.insecure)) credentials.tls = std::make_shared<const Tls>();
  return credentials;
}

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
  std::vector<int> listeners;
  HeldAddress held;
};

Node gather_node(const TcpOptions& options, const LaunchOptions& launch, bool alone) {
  check(options, alone);
  Node node;
  node.credentials = make_credentials(options, alone);
  const auto address = bind_address(options);
  NodeOffer offer;
  offer.host_id = host_identity();
  offer.seed = launch.seed;
  if (!address.is_unspecified()) offer.address = address.to_string();
  for (int i = 0; i < options.per_node; ++i)
    node.listeners.push_back(bind_anywhere(address, offer.ports.emplace_back()));
  if (alone) {
    node.table.seed = launch.seed;
    node.table.session = make_nonce();
    for (const auto port : offer.ports) {
      node.table.peers.push_back({0, address.is_unspecified() ? "127.0.0.1" : offer.address, port});
    }
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
  Meeting met = meet(meeting, node.credentials, offer);
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
  if (options.max_nodes > 1) {
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

}  // namespace

void run_on_tcp(const TcpOptions& options, const LaunchOptions& launch, const Program& program) {
  const bool alone = options.max_nodes == 1;
  const Node node = gather_node(options, launch, alone);
  // Records the first failure on this machine; the ranks' messages do not go through it.
  const auto status = Segment::create(Segment::Reach::machine, options.per_node, 1 << 20);
  ChildOptions children{.first_rank = node.table.first_rank,
                        .grace_seconds = launch.grace_seconds,
                        .hears_signals = launch.hears_signals,
                        .on_death = launch.on_death};
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
