#pragma once
// How a server answers: the shared side's answer, encoded if the rule or the codec says so, goes to a worker. Belongs
// to a ServerShard, whose task uses it.

#include <span>

#include "parallel/server/replication.h"

namespace echelon::exchanges {

// Whether answers are encoded as pushes are.
bool encodes_answers(const ExchangeParts& parts, const Codec& codec);

class AnswerSender {
 public:
  AnswerSender(ShardCore& core, const ShardReplication& replication);

  // The present answer, as it travels. Good until the next call.
  std::span<const std::byte> encoded(ShardKey& key);
  // `clock`: how many steps of every worker it has seen, or the round that is open.
  void send(ShardKey& key, Rank to, std::int64_t clock, std::span<const std::byte> bytes);

 private:
  ShardCore& core_;
  const ShardReplication& replication_;
  Buffer bytes_;
};

}  // namespace echelon::exchanges
