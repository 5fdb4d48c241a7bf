#include "world/transport/tcp/endpoint.h"

#include "base/error.h"

namespace echelon::tcp {

using asio::ip::tcp;

tcp::endpoint resolve(asio::io_context& io, const std::string& host, std::uint16_t port) {
  std::error_code error;
  const auto found = tcp::resolver(io).resolve(host, std::to_string(port), tcp::resolver::numeric_service, error);
  if (error || found.empty()) bad_input("the host '{}' of the rendezvous is unknown: {}", host, error.message());
  for (const auto& entry : found) {
    if (entry.endpoint().address().is_v4()) return entry.endpoint();
  }
  return found.begin()->endpoint();
}

std::optional<tcp::acceptor> try_listen(asio::io_context& io, const tcp::endpoint& at, std::error_code& error) {
  tcp::acceptor acceptor(io);
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(256, error);
  if (error) return std::nullopt;
  return acceptor;
}

}  // namespace echelon::tcp
