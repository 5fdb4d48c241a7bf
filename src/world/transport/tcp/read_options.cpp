#include "world/transport/tcp/read_options.h"

#include <charconv>
#include <optional>

#include "world/os/host.h"

namespace echelon::tcp {

namespace {

bool is_loopback(const std::string& host) {
  std::error_code error;
  const auto address = asio::ip::make_address(host, error);
  return error ? host == "localhost" : address.is_loopback();
}

std::optional<Secret> given_secret(const TcpOptions& options) {
  if (!options.secret_file.empty()) return read_secret_file(options.secret_file);
  const std::string value = environment("ECHELON_SECRET");
  if (value.empty()) return std::nullopt;
  return parse_secret(value, "ECHELON_SECRET");
}

}  // namespace

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

asio::ip::address bind_address(const TcpOptions& options) {
  std::error_code error;
  const auto address = asio::ip::make_address(options.bind == "localhost" ? "127.0.0.1" : options.bind, error);
  if (error) bad_input("'{}' is no address to listen at: give a number such as 10.0.0.2", options.bind);
  return address;
}

void check_options(const TcpOptions& o, bool alone) {
  std::string problems;
  const auto complain = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  if (o.min_nodes < 1 || o.max_nodes < o.min_nodes) {
    complain(fmt::format("{}:{} nodes: expected 1 <= least <= most", o.min_nodes, o.max_nodes));
  }
  if (o.per_node < 1) complain(fmt::format("{} ranks on a node: at least 1", o.per_node));
  if (o.node_rank >= o.max_nodes) complain(fmt::format("node rank {} of at most {} nodes", o.node_rank, o.max_nodes));
  if (!alone && !o.etcd && !is_loopback(parse_endpoint(o.endpoint).host) && bind_address(o).is_loopback()) {
    complain(
        fmt::format("the nodes meet at {}, but the ranks of this one would listen at {}, where no other machine can "
                    "reach them: bind to this machine's address",
                    o.endpoint, o.bind));
  }
  if (!problems.empty()) bad_input("{}", problems);
}

Credentials make_credentials(const TcpOptions& options, bool alone) {
  const bool leaves = !bind_address(options).is_loopback() ||
                      (!alone && !options.etcd && !is_loopback(parse_endpoint(options.endpoint).host));
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

}  // namespace echelon::tcp
