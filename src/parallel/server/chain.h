#pragma once
// Replicated servers: the servers of a key form a chain on consecutive ranks. The first takes what workers send and
// passes it on, message by message in the order in which it handles them; so every replica makes the same updates. The
// last one answers: an answer means that the whole chain has the update.
//
// Any member may lose its state, as long as one is left. It says so to whoever writes to the chain (`lost`), and they
// say so to the first member that is left, which passes it on:
//   it was the first      What has come to it is lost. Workers send the next one again what had no answer.
//   it was in the middle  What was passed to it is lost. The one before it has kept the last message of every worker
//   for
//                         every key (an older one was answered, or the worker would not have written again), and sends
//                         them in their order to the one behind.
//   it was the last       Its answers are lost. The one before it has every update. Workers ask again (`again`).
// A member that has seen a message before knows that by its clock, and merges it once.
//
// chain_worker.cpp has a worker's side of it, chain_member.cpp a server's.

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/server/replication.h"

namespace echelon::exchanges {

constexpr int most_replicas = 4;

// The tag and the rank of the server at that position of the chain that begins on rank `head`: replicas read tags of
// their own (5, 6, 7).
inline std::uint16_t chain_tag(int position) { return static_cast<std::uint16_t>(position == 0 ? 0 : 4 + position); }
inline Rank chain_rank(Rank head, int position, int workers) { return (head + position) % workers; }

inline LostMembers member_bit(int position) { return LostMembers{1} << position; }
inline bool is_lost(LostMembers lost, int position) { return (lost & member_bit(position)) != 0; }
// The nearest that is left after `position` (-1: of all); `replicas` if there is none.
inline int member_after(LostMembers lost, int position, int replicas) {
  do ++position;
  while (position < replicas && is_lost(lost, position));
  return position;
}
inline int last_member(LostMembers lost, int replicas) {  // -1: none is left
  do --replicas;
  while (replicas >= 0 && is_lost(lost, replicas));
  return replicas;
}

// A message that was passed on names its first sender in the upper bits of its kind.
constexpr int kind_bits = 5;
constexpr Rank most_chain_ranks = (1 << (16 - kind_bits)) - 2;
// Of those bits the highest: the worker has not got the answer, so it is to be sent even if the message is known.
constexpr std::uint16_t again = 1 << (kind_bits - 1);
inline std::uint16_t passed_on(std::uint16_t kind, Rank from) {
  return static_cast<std::uint16_t>(kind | (from + 1) << kind_bits);
}
inline Rank first_sender(std::uint16_t kind) { return (kind >> kind_bits) - 1; }  // -1: it was not passed on
inline std::uint16_t kind_of(std::uint16_t kind) { return kind & ((1 << kind_bits) - 1); }

std::unique_ptr<WorkerReplication> make_chain_worker(const ServerSettings& settings, const ExchangeParts& parts,
                                                     const ServerMap& map, const ParameterCopy& copy);
std::unique_ptr<ShardReplication> make_chain_member(const ServerSettings& settings, int position, ShardCore& core);

}  // namespace echelon::exchanges
