#include "parallel/planned/gradient_buckets.h"

#include <algorithm>

#include "graph/ops/communication.h"
#include "tensor/buffer.h"

namespace echelon {

namespace {

constexpr std::size_t most_bucket_floats = std::size_t{1} << 20;
constexpr std::size_t buckets_under_way = 2;  // while others are being filled

struct Contribution {
  int parameter = 0;
  int pass = 0;
};

// Of a micro-batch, in that order.
std::vector<Contribution> contributions_of(const StagePlan& stage) {
  std::vector<Contribution> all;
  for (int pass = 0; pass < 3; ++pass)
    for (std::size_t n = stage.begin[static_cast<std::size_t>(pass)];
         n < stage.begin[static_cast<std::size_t>(pass) + 1]; ++n)
      if (const int parameter = ops::contributes_to(*stage.plan.graph.nodes()[n].op); parameter >= 0)
        all.push_back({parameter, pass});
  return all;
}

// The most buckets that are being filled at once.
std::size_t most_open(const GradientBuckets& made, const std::vector<Contribution>& order) {
  std::vector<int> seen(made.buckets.size(), 0);
  std::size_t open = 0, most = 0;
  for (const Contribution& c : order) {
    const int bucket = made.of_parameter[static_cast<std::size_t>(c.parameter)];
    if (bucket < 0) continue;
    int& count = seen[static_cast<std::size_t>(bucket)];
    if (count++ == 0) most = std::max(most, ++open);
    if (count == made.buckets[static_cast<std::size_t>(bucket)].parameters) --open;
  }
  return most;
}

}  // namespace

GradientBuckets gradient_buckets(const StagePlan& stage, const ParameterTable& table) {
  const std::vector<Contribution> order = contributions_of(stage);
  std::vector<int> pass_of(table.entries().size(), -1);
  for (const Contribution& c : order) pass_of[static_cast<std::size_t>(c.parameter)] = c.pass;
  const std::size_t limit = std::min(most_bucket_floats, table.floats() / 16);
  GradientBuckets made;
  made.of_parameter.assign(table.entries().size(), -1);
  int pass = -1;  // of the bucket that may get more; -1: none
  for (std::size_t p = 0; p < table.entries().size(); ++p) {
    const ParameterTable::Entry& e = table.entries()[p];
    if (pass_of[p] < 0) continue;
    if (e.size > limit) {
      pass = -1;
      continue;
    }
    if (pass != pass_of[p] || e.offset + e.size - made.buckets.back().elements.begin > limit)
      made.buckets.push_back({.elements = {e.offset, e.offset}});
    pass = pass_of[p];
    GradientBuckets::Bucket& bucket = made.buckets.back();
    bucket.elements.end = e.offset + e.size;
    ++bucket.parameters;
    made.of_parameter[p] = static_cast<int>(made.buckets.size()) - 1;
    made.slot_floats = std::max(made.slot_floats, aligned(bucket.elements.count() * sizeof(float)) / sizeof(float));
  }
  if (!made.buckets.empty()) made.slots = most_open(made, order) + buckets_under_way;
  return made;
}

}  // namespace echelon
