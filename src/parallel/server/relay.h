#pragma once
// An inner node of an overlay (overlay.h): takes the contributions of its children and of its own worker, adds them up,
// passes one sum on towards the server, and hands the answer down to all children whose contributions were in the sum.
//
//   in rounds   the sum leaves when all children's contributions to the round are in it
//   else        one sum at a time is on its way up; what comes meanwhile is added up and leaves when the answer is
//               there. So no child waits for a slow one, and the server hears from each child at most once at a time.
//
// With a codec, sums are encoded anew, with this node's own error feedback; answers go down as they are.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/exchanges/overlay.h"
#include "parallel/server/keys.h"

namespace echelon::exchanges {

class ServerRelay {
 public:
  static constexpr int relay_tag = 4;

  ServerRelay(const ExchangeParts& parts, const Overlay& overlay, const std::vector<Key>& keys);
  ~ServerRelay();

  // Where a rank's worker writes for that key, and where its server (or relay) answers `rank` if that is a child.
  static Address entry_address(const Overlay& overlay, Rank rank, Rank root, const std::vector<int>& hosts);
  static Address reply_to(const Overlay& overlay, Rank child, Rank root, const std::vector<int>& hosts);

  std::vector<StateSpan> state();
  // For whom the last contribution that came here still waits, for the worker beside it to say; -1: for nobody.
  Rank latecomer() const { return latecomer_; }

 private:
  struct Node {  // of one key
    Range range;
    Rank root = 0;
    bool inner = false;
    Address up;
    std::vector<Address> children;  // where their answers go; the own worker is the last
    std::unique_ptr<Codec> decoder, encoder;
    Buffer sum;
    double shares = 0;
    double rates = 0;                // learning rates, added up; not in rounds: times their shares
    std::uint64_t versions = 0;      // not in rounds: the sum of those that contributions were computed from
    std::int64_t contributions = 0;  // of workers, in the sum
    std::vector<int> in_sum;         // children
    std::vector<std::optional<Message>> waiting;  // in rounds, by child: added when all are there, always in this order
    std::vector<char> gone;                       // by child: no contribution of it will come before all have met
    std::vector<int> on_its_way;                  // those whose sum has been sent and not been answered
    std::int64_t sent = 0;
    std::int64_t round = 0;  // of the sum
  };
  void handle(Message& message);
  Rank latecomer_of(const Node& node) const;
  void take_contribution(Node& node, std::uint32_t key, Message& message);
  void add(Node& node, std::uint32_t key, const Message& message);
  void send_up(Node& node, std::uint32_t key, std::int64_t clock);
  void child_leaves(Node& node, std::uint32_t key, const Message& message);
  bool is_complete(const Node& node) const;
  int child_of(const Node& node, const Message& message) const;
  void hand_down(Node& node, std::uint32_t key, const Message& message);

  ExchangeParts parts_;
  bool in_rounds_;
  std::vector<Node> nodes_;  // by key
  Buffer contribution_, bytes_;
  std::atomic<Rank> latecomer_ = -1;
  std::unique_ptr<Task> task_;  // last
};

}  // namespace echelon::exchanges
