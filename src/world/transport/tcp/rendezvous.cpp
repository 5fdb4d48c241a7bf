#include "world/transport/tcp/rendezvous.h"

#include <algorithm>
#include <limits>
#include <list>
#include <optional>

#include "world/transport/tcp/endpoint.h"
#include "world/transport/tcp/notes.h"
#include "world/transport/tcp/rendezvous_messages.h"

namespace echelon::tcp {

using asio::use_awaitable;
using asio::ip::tcp;

namespace {

constexpr std::uint32_t longest_answer = 4u << 20;  // a table of about fifty thousand ranks

struct Guest {
  Wire wire;
  std::string seen_address;
  int node_rank = -1;
  NodeOffer offer;
  bool registered = false;
  std::string error;  // to tell it
};

class Server {
 public:
  Server(asio::io_context& io, tcp::acceptor acceptor, const Credentials& credentials, const RendezvousOptions& options)
      : io_(io),
        options_(options),
        last_call_(io),
        listener_(
            std::move(acceptor), credentials,
            [this](const Hello& hello) {
              if (hello.role != Role::node) return Verdict::not_expected;
              return decided_ ? Verdict::too_many : Verdict::welcome;
            },
            [this](Wire wire, const Hello&) {
              auto guest = std::make_shared<Guest>(Guest{std::move(wire), {}, -1, {}, false, {}});
              std::error_code error;
              guest->seen_address = guest->wire.socket().remote_endpoint(error).address().to_string();
              asio::co_spawn(io_, attend(guest), asio::detached);
            },
            options.say) {}

  int nodes() const { return static_cast<int>(guests_.size()); }
  bool finished() const { return decided_ && unanswered_ == 0; }

 private:
  asio::awaitable<void> attend(std::shared_ptr<Guest> guest) {
    try {
      const std::string note = co_await read_note(guest->wire, 256u << 10);
      take_offer(read_offer(note), *guest);
      if (!guest->error.empty() || decided_) {
        const std::string why = decided_ ? "the job has begun without this node" : guest->error;
        std::string refusal = write_refusal(why);
        co_await write_note(guest->wire, std::move(refusal));
        co_return;
      }
      guest->registered = true;
      guests_.push_back(guest);
      consider();
      std::byte thanks;
      co_await guest->wire.read_all({&thanks, 1});
    } catch (const std::exception&) {
    }
    if (!guest->registered) co_return;
    if (decided_) {
      --unanswered_;
    } else {  // gone before the beginning
      guests_.remove(guest);
      if (nodes() < options_.min_nodes) last_call_.cancel();
    }
  }

  void take_offer(OfferMessage note, Guest& guest) {
    guest.node_rank = note.node_rank;
    guest.offer = std::move(note.offer);
    if (guest.offer.address.empty()) guest.offer.address = guest.seen_address;
    const int least = note.min_nodes, most = note.max_nodes;
    if (least != options_.min_nodes || most != options_.max_nodes) {
      guest.error = fmt::format("this node was told {}:{} nodes, the one at the rendezvous {}:{}", least, most,
                                options_.min_nodes, options_.max_nodes);
    } else if (guest.offer.ports.empty()) {
      guest.error = "this node brings no ranks";
    } else if (guest.node_rank >= options_.max_nodes) {
      guest.error = fmt::format("node rank {} of at most {} nodes", guest.node_rank, options_.max_nodes);
    } else if (guest.node_rank >= 0) {
      for (const auto& other : guests_) {
        if (other->node_rank == guest.node_rank)
          guest.error = fmt::format("node rank {} is there twice", guest.node_rank);
      }
    }
  }

  void consider() {
    if (nodes() >= options_.max_nodes) return decide();
    if (nodes() != options_.min_nodes) return;
    last_call_.expires_after(seconds_duration(options_.last_call_seconds));
    last_call_.async_wait([this](std::error_code error) {
      if (!error && !decided_ && nodes() >= options_.min_nodes) decide();
    });
  }

  void decide() {
    decided_ = true;
    last_call_.cancel();
    // Asked-for places first, the others in the order of their coming into the gaps.
    std::vector<std::shared_ptr<Guest>> order(guests_.size());
    std::vector<std::shared_ptr<Guest>> rest;
    for (const auto& guest : guests_) {
      const bool fits = guest->node_rank >= 0 && guest->node_rank < nodes();
      if (fits)
        order[static_cast<std::size_t>(guest->node_rank)] = guest;
      else
        rest.push_back(guest);
    }
    auto next = rest.begin();
    for (auto& place : order) {
      if (!place) place = *next++;
    }
    std::vector<NodeOffer> offers;
    for (const auto& guest : order) offers.push_back(guest->offer);
    const Bytes32 session = make_nonce();
    unanswered_ = nodes();
    for (std::size_t i = 0; i < order.size(); ++i) {
      asio::co_spawn(
          io_,
          [](std::shared_ptr<Guest> guest, std::string text) -> asio::awaitable<void> {
            try {
              co_await write_note(guest->wire, std::move(text));
            } catch (const std::exception&) {
              std::error_code ignored;
              guest->wire.socket().close(ignored);  // its reader counts it
            }
          }(order[i], write_table(table_of(offers, i, session))),
          asio::detached);
    }
  }

  asio::io_context& io_;
  RendezvousOptions options_;
  asio::steady_timer last_call_;
  std::list<std::shared_ptr<Guest>> guests_;
  bool decided_ = false;
  int unanswered_ = 0;
  Listener listener_;
};

asio::awaitable<JobTable> ask(tcp::endpoint endpoint, Credentials credentials, RendezvousOptions options,
                              NodeOffer offer, std::chrono::steady_clock::time_point deadline, double closed_seconds) {
  Hello hello;
  hello.role = Role::node;
  Wire wire = co_await dial(endpoint, credentials, hello, deadline, closed_seconds);
  // One thing at a time: GCC 12 destroys what is made on the way in an expression with co_await once too often.
  std::string brings = write_offer({offer, options.node_rank, options.min_nodes, options.max_nodes});
  co_await write_note(wire, std::move(brings));
  const std::string answer = co_await read_note(wire, longest_answer);
  const JobTable table = read_table(answer, offer.ports.size());
  const std::byte thanks{1};
  co_await wire.write_all({&thanks, 1});
  co_return table;
}

// An address of this machine at which nobody answers, though somebody has it: for so long no job forms.
constexpr double held_seconds = 1.5;

}  // namespace

Meeting meet(const RendezvousOptions& options, const Credentials& credentials, const NodeOffer& offer) {
  asio::io_context io(1);
  const auto endpoint = resolve(io, options.host, options.port);
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  HeldAddress held;
  std::unique_ptr<Server> server;
  double closed_seconds = std::numeric_limits<double>::infinity();
  if (options.node_rank <= 0) {
    std::error_code error;
    if (auto acceptor = try_listen(io, endpoint, error)) {
      held = HeldAddress(acceptor->native_handle());
      server = std::make_unique<Server>(io, std::move(*acceptor), credentials, options);
    } else if (options.node_rank == 0) {
      bad_input("node 0 cannot listen at the rendezvous {}: {}", where, error.message());
    } else if (error == asio::error::address_in_use) {
      closed_seconds = held_seconds;
    }
  }
  const auto start = std::chrono::steady_clock::now(), deadline = start + seconds_duration(options.join_seconds);
  auto notice = start + std::chrono::seconds(3);
  std::optional<JobTable> table;
  std::exception_ptr problem;
  asio::co_spawn(io, ask(endpoint, credentials, options, offer, deadline, closed_seconds),
                 [&](std::exception_ptr e, JobTable t) {
                   problem = e;
                   if (!e) table = std::move(t);
                 });
  const auto end = deadline + seconds_duration(options.last_call_seconds + 2);
  while (!problem && !(table && (!server || server->finished())) && std::chrono::steady_clock::now() < end) {
    io.run_one_until(std::min(end, notice));
    const auto now = std::chrono::steady_clock::now();
    if (now < notice || !options.say) continue;
    options.say(
        server ? fmt::format("waiting at {}: {} of {} machines are here", where, server->nodes(), options.min_nodes)
               : fmt::format("waiting for the other machines at {}", where));
    notice = now + 2 * (now - start);
  }
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const Refused& e) {
    bad_input("the rendezvous at {} refused: {}", where, e.what());
  } catch (const std::system_error& e) {
    fail("the rendezvous at {} broke off: {}", where, e.code().message());
  } catch (const BadRendezvousMessage& e) {
    fail("the rendezvous at {} sent a table that cannot be read: {}", where, e.what());
  } catch (const NobodyListens&) {
    bad_input(
        "the job '{}' at {} has begun without this machine, which came too late (or another program holds that port): "
        "wait for its end, or start another job at another port",
        options.job_id, where);
  } catch (const BadInput&) {
    throw;
  } catch (const Failure& e) {
    fail("no rendezvous at {} within {:g} s: {}", where, options.join_seconds, e.what());
  }
  if (!table) {
    fail("waited {:g} s at the rendezvous {} for {} nodes{}", options.join_seconds, where, options.min_nodes,
         server ? fmt::format("; {} came", server->nodes()) : "");
  }
  server.reset();
  held.stop_listening();
  return {*std::move(table), std::move(held)};
}

}  // namespace echelon::tcp
