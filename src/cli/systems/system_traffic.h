#pragma once
// What a system sends: its exchange's formula (parallel/exchange.h), and the formula's value for one case.

#include <string>

#include "recipe/system_file.h"

namespace echelon::cli {

struct SystemTraffic {
  std::string messages_formula;    // the same of the messages
  std::string formula;             // for one exchange, in n workers and W bytes of the encoded model
  double bytes = 0, messages = 0;  // of all workers together in a step, on average over the period
  bool at_most = false;            // they depend on which workers are fast, and are never more
  int workers = 0;
  std::size_t batch = 0;  // samples, of all workers together
  std::size_t floats = 0;
  std::size_t buckets = 1;  // in which a gradient leaves; each is encoded and sent by itself
  bool measured = false;    // a run measures how many buckets it makes: so many times more messages, as many bytes
  double encoded_bytes = 0;
};

// For a network of models/zoo.h, trained by that many workers with batches of that many samples in all. BadInput if the
// system's parts cannot be read.
SystemTraffic traffic_of(const SystemFile& system, const std::string& model, int workers, std::size_t batch);

}  // namespace echelon::cli
