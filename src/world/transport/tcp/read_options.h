#pragma once
// What TcpOptions say, read and checked. BadInput for what the user can cure.

#include <cstdint>
#include <string>

#include "world/transport/tcp/join.h"
#include "world/transport/tcp/listener.h"

namespace echelon::tcp {

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

HostAndPort parse_endpoint(const std::string& text);
asio::ip::address bind_address(const TcpOptions& options);
void check_options(const TcpOptions& options, bool alone);
Credentials make_credentials(const TcpOptions& options, bool alone);  // `alone`: a job of one node needs no secret

}  // namespace echelon::tcp
