#include "parallel/server/answers.h"

#include <algorithm>

namespace echelon::exchanges {

bool encodes_answers(const ExchangeParts& parts, const Codec& codec) {
  return parts.rule->traits().answers_changes || codec.traits().weights;
}

AnswerSender::AnswerSender(ShardCore& core, const ShardReplication& replication)
    : core_(core), replication_(replication) {
  std::size_t most = 0;
  for (const ShardKey& key : core_.keys)
    if (key.answer_codec) most = std::max(most, key.answer_codec->most_bytes());
  bytes_ = Buffer(most);
}

std::span<const std::byte> AnswerSender::encoded(ShardKey& key) {
  if (!key.answer_codec) return std::as_bytes(key.shared->answer());
  const Stream random(
      {core_.parts.seed, static_cast<std::uint32_t>(key.version), key.number, stream_layer("answer codec")});
  const std::span<std::byte> out = bytes_.as<std::byte>();
  return out.first(
      key.answer_codec->encode(key.shared->answer(), {.number = key.version, .epoch = 1e9, .random = random}, out));
}

void AnswerSender::send(ShardKey& key, Rank to, std::int64_t clock, std::span<const std::byte> bytes) {
  key.shared->was_read(to);
  if (!replication_.answers()) return;
  core_.parts.mailbox->post(to,
                            {.kind = answer,
                             .tag = core_.writers.reply_tag(to),
                             .key = key.number,
                             .clock = clock,
                             .number = static_cast<double>(key.clocks[static_cast<std::size_t>(to)]),
                             .second = static_cast<std::uint64_t>(key.version)},
                            bytes);
}

}  // namespace echelon::exchanges
