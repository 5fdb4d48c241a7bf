#pragma once
// What the machines of a job tell each other at the rendezvous, as JSON: what a node brings, and then the table of all
// ranks, or why this node has no place in it. A note is checked whole before anything in it is believed. Pure
// functions.

#include <string>
#include <string_view>

#include "world/transport/tcp/rendezvous.h"

namespace echelon::tcp {

// A note that makes no sense.
class BadRendezvousMessage : public Failure {
  using Failure::Failure;
};

struct OfferMessage {
  NodeOffer offer;
  int node_rank = -1;  // -1: any
  int min_nodes = 0, max_nodes = 0;
};

std::string write_offer(const OfferMessage& note);
OfferMessage read_offer(std::string_view text);  // throws BadRendezvousMessage

std::string write_table(const JobTable& table);
std::string write_refusal(std::string_view reason);
// The table for a node that brings so many ranks. Throws BadRendezvousMessage; BadInput if it is a refusal.
JobTable read_table(std::string_view text, std::size_t ranks);

}  // namespace echelon::tcp
