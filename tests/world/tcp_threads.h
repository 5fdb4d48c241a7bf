#pragma once
// Ranks of the TCP world as threads of this process, each with its own world and its own sockets on loopback: what
// fails fails in one process, where a test can look at it (and the sanitizers too).

#include <unistd.h>

#include <exception>
#include <thread>
#include <vector>

#include "world/transport/tcp/tcp_world.h"

namespace echelon::test {

struct TcpSettings {
  bool tls = false;
  double silence_seconds = 1e6;  // a rank may not run for seconds on a busy machine, and is not lost for that
  double mesh_seconds = 600;
};

inline int listen_on_loopback(std::uint16_t& port) {
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"), 0});
  port = acceptor.local_endpoint().port();
  return acceptor.release();
}

inline std::vector<tcp::RankConfig> make_configs(int ranks, const TcpSettings& settings = {}) {
  std::vector<tcp::RankConfig> configs(static_cast<std::size_t>(ranks));
  tcp::Credentials credentials;
  credentials.secret = tcp::make_secret();
  credentials.job = tcp::sha256("test");
  if (settings.tls) credentials.tls = std::make_shared<const tcp::Tls>();
  tcp::JobTable table;
  table.session = tcp::make_nonce();
  table.seed = 7;
  for (int i = 0; i < ranks; ++i) {
    std::uint16_t port = 0;
    configs[static_cast<std::size_t>(i)].listener = listen_on_loopback(port);
    table.peers.push_back({0, "127.0.0.1", port});
  }
  for (int i = 0; i < ranks; ++i) {
    auto& config = configs[static_cast<std::size_t>(i)];
    config.rank = i;
    config.table = table;
    config.credentials = credentials;
    config.silence_seconds = settings.silence_seconds;
    config.mesh_seconds = settings.mesh_seconds;
    config.share_memory = false;
  }
  return configs;
}

// What each rank threw.
inline std::vector<std::exception_ptr> run_ranks(const std::vector<tcp::RankConfig>& configs, const Program& program) {
  std::vector<std::exception_ptr> failures(configs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        tcp::run_rank(configs[i], program);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (auto& t : threads) t.join();
  return failures;
}

inline std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  }
}

// All ranks must succeed; rethrows the first failure.
inline void run_on_loopback(int ranks, const Program& program, const TcpSettings& settings = {}) {
  for (const auto& failure : run_ranks(make_configs(ranks, settings), program)) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace echelon::test
