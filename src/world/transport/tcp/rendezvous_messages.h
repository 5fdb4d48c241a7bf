#pragma once
// What the nodes of a job send each other at the rendezvous, as JSON: a node's offer, and then the table of all ranks,
// or why this node is refused. A message is checked as a whole before anything in it is used. Pure functions.

#include <string>
#include <string_view>

#include "world/transport/tcp/rendezvous.h"

namespace echelon::tcp {

// A message that makes no sense.
class BadRendezvousMessage : public Failure {
  using Failure::Failure;
};

struct OfferMessage {
  NodeOffer offer;
  int node_rank = -1;  // -1: any
  int min_nodes = 0, max_nodes = 0;
};

std::string write_offer(const OfferMessage& message);
OfferMessage read_offer(std::string_view text);  // throws BadRendezvousMessage

std::string write_table(const JobTable& table);
std::string write_refusal(std::string_view reason);
// The table for a node that has that many ranks. Throws BadRendezvousMessage; BadInput if it is a refusal.
JobTable read_table(std::string_view text, std::size_t ranks);

}  // namespace echelon::tcp
