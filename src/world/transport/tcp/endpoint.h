#pragma once
// Addresses at which the launchers of a job meet.

#include <optional>
#include <string>

#include "world/transport/tcp/asio.h"

namespace echelon::tcp {

asio::ip::tcp::endpoint resolve(asio::io_context& io, const std::string& host, std::uint16_t port);  // BadInput

// A listener at the endpoint, if this machine has that address and no program listens there yet.
std::optional<asio::ip::tcp::acceptor> try_listen(asio::io_context& io, const asio::ip::tcp::endpoint& at,
                                                  std::error_code& error);

}  // namespace echelon::tcp
