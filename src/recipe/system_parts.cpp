#include "recipe/system_parts.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace echelon {

namespace {

SystemAxis rules() {
  return {"rule",
          "what is exchanged and how it is merged",
          "grad_mean",
          {
              {"grad_mean", "the mean gradient of all workers; every replica takes the same step", {}},
              {"grad_push",
               "gradients go to the owner of the parameters, where an update rule applies them",
               {{"scale", "\"none\"", "weight of a gradient: none, staleness (divided by it) or speed (of its worker)"},
                {"dc_lambda", "0", "delay compensation: g + lambda g^2 (w_now - w_then)"},
                {"momentum_correction", "0", "share of the asynchrony's momentum 1 - 1/n taken off that of optim"},
                {"optim", "the recipe's [optim]", "a table: the update rule at the owner (without a rate)"}}},
              {"param_mean", "the mean of the workers' parameters replaces them", {}},
              {"outer_momentum",
               "the mean change since the last meeting is a gradient of an outer step",
               {{"kind", "\"block\"", "block (BMUF), slowmo or nesterov (DiLoCo)"},
                {"momentum", "0.5", "of the outer step"},
                {"lr", "1", "of the outer step"}}},
              {"sma",
               "every learner is drawn towards the central average model, which has a momentum",
               {{"alpha", "1 / workers", "the share of the difference that is corrected"},
                {"momentum", "0.9", "of the central model"}}},
              {"elastic",
               "worker and centre move towards each other by the same force",
               {{"alpha", "0.9 / workers", "the share of the difference that moves"}}},
              {"mpca",
               "a penalty on the distance to the (extrapolated) centre in the loss; updates and sharing decoupled",
               {{"penalty", "0.1", "of the distance, times the learning rate"},
                {"extrapolate", "true", "the stale centre along its last movement"}}},
              {"movement_add", "what a worker's own steps have moved it is added to the common parameters", {}},
              {"sign_majority",
               "a vote on the sign of every number of the gradient",
               {{"momentum", "0.9", "of the mean gradient whose sign is the vote"}}},
              {"neighbour_mean", "the mean with the neighbours' parameters, by the graph's mixing matrix", {}},
              {"gossip_sum", "parameters travel with a weight; the receiver takes the weighted mean", {}},
              {"gossip_walk", "models walk between workers and are merged on arrival", {}},
          }};
}

// What all exchanges have.
std::vector<Knob> with_period(std::vector<Knob> own) {
  own.insert(own.end(), {{"tau", "1", "steps between exchanges"},
                         {"probability", "1", "that a worker takes part when an exchange is due"},
                         {"at_end", "false", "exchange once, after the last step"}});
  return own;
}

SystemAxis exchanges() {
  const Knob window{"window", "0",
                    "messages on their way to a peer before a further one is left out; 0: by their size"};
  return {
      "exchange",
      "with whom",
      "all_reduce",
      {
          {"all_reduce", "all workers, by a collective",
           with_period(
               {{"algorithm", "\"exact\"",
                 "exact (the same bits for any number of workers), auto, or one of docs/collectives.md"},
                {"way", "\"auto\"", "of encoded sums: gather, owners, doubling, measured; auto: by their size"},
                {"switch_bytes", "262144", "algorithm auto: smaller buckets by halving and doubling, others in a ring"},
                {"switch", "true", "algorithm sparse: turn dense when that is smaller"}})},
          {"owner_shard", "every worker owns 1/n: reduce-scatter, step, all-gather", with_period({})},
          {"server", "parameter servers that live on the workers",
           with_period(
               {{"servers", "1", "shards of the model: 1 to n, or \"all\" for one on each worker"},
                {"fanout", "0", "above 0: servers form a tree in which each has so many children"},
                {"two_level", "false", "workers of one host merge before the network"},
                {"replicas", "1", "of each shard, in a chain"},
                {"factors", "false", "pushes have inputs and errors of fully connected layers if that is less"},
                {"n_push", "1", "sync async: steps whose gradients are merged before a push"},
                {"n_fetch", "1", "sync async: steps between fetches; until then a worker steps its copy"},
                {"warm_start", "0", "sync async: updates that the first worker makes alone"},
                {"filters", "[]", "significant (leave out small changes), skip (leave out at random)"},
                {"threshold", "0.001", "relative size below which `significant` leaves a change out"},
                {"skip", "0.5", "probability with which `skip` leaves a block of numbers out"},
                {"unbiased", "false", "skipped blocks are dropped, and others made larger"},
                {"block", "64", "numbers that filters look at together"},
                {"kill_server", "\"\"",
                 "an experiment: \"0@20\" loses server 0's state after 20 updates, \"0.1@20\" that of its "
                 "first replica; several "
                 "with commas"},
                {"planned", "true",
                 "one message for all that a server has, when all of it is complete; false: one for each tensor"}})},
          {"neighbour", "the neighbours in a graph",
           with_period({{"graph", "\"ring\"", "ring, torus, halton, hypercube, one_peer or file"},
                        {"file", "\"\"", "a list of edges, a pair of ranks on each line"},
                        {"edges", "\"\"", "the text of such a file, which a run keeps in its place"},
                        window})},
          {"random_peer", "one other worker, drawn at random", with_period({window})},
          {"partial", "each round another slice of the gradient goes to each peer",
           with_period({{"slices", "0", "parts of a gradient; 0: as the bandwidth allows"},
                        {"drop", "0", "share of the messages that a bad network loses: an experiment"},
                        window})},
          {"factors", "the factors u, v of fully connected gradients go to all; the product is made locally",
           with_period({{"hybrid", "false", "for each layer whichever is smaller: factors or the whole"}})},
          {"learners", "several replicas on every worker, which meet there first",
           with_period({{"learners", "1", "on each worker, at the beginning"},
                        {"autotune", "false", "add learners as long as throughput rises, then shorten tau"},
                        {"most", "4", "learners"},
                        {"window", "8", "meetings between two decisions"}})},
          {"shared_memory", "one memory, written without locks",
           with_period({{"groups", "1", "of cores with a copy each, that pass a token"},
                        {"token_every", "4", "updates of a group before it passes the token"},
                        {"add", "\"racing\"", "racing (updates may be lost), or atomic"}})},
          {"elastic_tree", "parent and children in a tree, shown each other's weights",
           with_period({{"fanout", "2", "children of each"},
                        {"tau_down", "tau", "steps between showing weights to children; tau is to the parent"}})},
          {"nested", "groups exchange inside, and their heads outside",
           with_period(
               {{"group", "2", "workers in a group"}, {"outer", "a server", "a table: the exchange between groups"}})},
      }};
}

SystemAxis syncs() {
  const Knob staleness{"staleness", "3", "clocks"};
  const Knob share{"epoch_share", "1",
                   "work own: an epoch ends when so much of it is done, without what slow ones have left"};
  const Knob work{"work", "\"common\"",
                  "common: who is ready takes the next batch; own: each has its part of every batch"};
  return {"sync",
          "when to wait",
          "bsp",
          {
              {"bsp", "everybody waits for everybody, every time", {}},
              {"quorum", "the step closes without the slowest", {{"backups", "1", "workers that are not waited for"}}},
              {"a_bsp", "the fastest closes the step with what the others have done of it", {}},
              {"ssp", "nobody leads the slowest by more", {staleness}},
              {"essp", "as ssp, and fresh parameters are sent before they are asked for", {staleness}},
              {"delay", "every step reads afresh, when all steps `staleness` before it are finished", {staleness}},
              {"value",
               "wait while the parameters are farther from what the slowest has read",
               {{"bound", "0.1", "of any parameter"}, work, share}},
              {"soft",
               "rounds that nobody waits for, unless the last answer is late",
               {{"staleness", "16", "steps after which it is"}}},
              {"approximate",
               "only changes above a relative threshold leave the site; it shrinks as 1 / sqrt(t)",
               {{"threshold", "0.01", "at the first step"},
                {"sites", "0", "groups of workers with servers of their own; 0: the hosts"},
                {"staleness", "8", "steps by which a site may be ahead of the slowest"},
                work,
                share}},
              {"async", "nobody waits", {work, share}},
          }};
}

SystemAxis codecs() {
  const Knob feedback{"error_feedback", "true", "carry what was left out into the next exchange"};
  const Knob entropy{"entropy", "false", "code the bytes by their frequency"};
  const Knob share{"share", "0.01", "of the numbers that is sent"};
  const Knob bucket{"bucket", "0", "numbers with a scale of their own; 0: those of a parameter"};
  const auto scale = [](const char* usual) {
    return Knob{"layer_scale", usual, "parameters by their root mean square: none, every_call, first_call"};
  };
  const auto lossy = [&](const char* carries, std::vector<Knob> knobs, const char* scaled = "\"none\"") {
    knobs.insert(knobs.end(), {{"error_feedback", carries, feedback.about}, scale(scaled), entropy});
    knobs.insert(knobs.end(), {{"momentum", "0", "taken before anything is left out, instead of the optimizer's"},
                               {"clip", "0", "with momentum: norm of the local gradient; 0: no limit"},
                               {"masking", "true", "with momentum: stop the velocity of what was sent"}});
    return knobs;
  };
  return {"codec",
          "in which encoding",
          "none",
          {
              {"none", "float32", {entropy}},
              {"fp16", "half precision", lossy("false", {})},
              {"bf16", "float32 without its lower half", lossy("false", {})},
              {"fixed16", "16-bit fixed point, rounded at random",
               lossy("false", {{"fraction_bits", "14", "behind the point"}})},
              {"flexpoint", "16-bit integers with one exponent in common", lossy("false", {bucket})},
              {"dorefa", "k bits, with noise before rounding", lossy("false", {{"bits", "6", "of a number"}, bucket})},
              {"one_bit", "the sign, and the mean of either side",
               lossy("true", {{"per", "\"row\"", "a mean for each piece, or for each row of it"}})},
              {"two_bit", "zero, or plus or minus a threshold",
               lossy("true", {{"threshold", "2", "sent at once, in units of the layer_scale"}}, "\"every_call\"")},
              {"terngrad", "-1, 0, 1 times the largest of the layer, unbiased but for the clipping",
               lossy("false", {{"clip_sigmas", "2.5", "deviations at which numbers are clipped; 0: none"}, bucket})},
              {"qsgd", "random rounding to levels of the norm, unbiased",
               lossy("false", {{"levels", "7", "besides zero, on either side"},
                               {"norm", "\"l2\"", "of a bucket: l2 or max"},
                               {"bucket", "512", bucket.about}})},
              {"strom", "numbers that have reached a threshold, as plus or minus it",
               lossy("true", {{"threshold", "3", "in units of the layer_scale"}}, "\"first_call\"")},
              {"top_k", "the largest numbers",
               lossy("true", {share,
                              {"layerwise", "false", "the share of each parameter, not of all together"},
                              {"values", "\"float32\"", "or fp16"},
                              {"warmup_epochs", "0", "over which the share falls to the final one"},
                              {"warmup_share", "0.25", "where it begins"}})},
              {"adaptive", "the largest positive and negative shares, as their means",
               lossy("true", {share}, "\"every_call\"")},
              {"dgc",
               "top-k with momentum correction, clipping, factor masking and warm-up",
               {{"share", "0.001", share.about},
                {"momentum", "0.9", "kept locally"},
                {"error_feedback", "false", "only with momentum = 0, which has a residual of its own"},
                {"masking", "true", "with momentum: stop the velocity of what was sent"},
                {"clip", "0", "with momentum: norm of the local gradient; 0: no limit"},
                {"warmup_epochs", "4", "over which the share falls from a quarter"},
                {"warmup_share", "0.25", "where it begins"},
                {"layerwise", "true", "the share of each parameter, not of all together"},
                {"values", "\"float32\"", "or fp16"},
                scale("\"none\""),
                entropy}},
              {"random_k", "a random mask, another one in every exchange", lossy("false", {share})},
              {"low_rank", "two thin factors of each matrix",
               lossy("true", {{"rank", "4", "of the factors"}, {"warm_start", "true", "from the factors before"}})},
              {"auto",
               "measures, and takes what makes a step fastest; none where nothing does",
               {{"candidates", "[\"fp16\", \"one_bit\", \"top_k\"]", "codecs to choose from, besides none"}}},
          }};
}

SystemAxis orders() {
  return {"order",
          "in which order on the wire",
          "backward",
          {
              {"backward",
               "as soon as it is ready, while lower layers still run",
               {{"bytes", "131072", "of a bucket at least"}}},
              {"whole", "all of it after backward; the default where nothing can leave earlier", {}},
              {"fusion",
               "the same in larger buckets: small tensors wait for each other",
               {{"bytes", "67108864", "of a bucket at least"}}},
              {"priority", "in slices, those of the first layers first", {{"bytes", "262144", "of a slice"}}},
              {"enforced", "the same order on all workers, from the graph", {{"bytes", "262144", "of a slice"}}},
              {"magnitude",
               "the most significant first",
               {{"bytes", "16384", "of a slice"}, {"rate", "0.5", "of the model's bytes that leave in a step"}}},
          }};
}

}  // namespace

const std::vector<SystemAxis>& system_axes() {
  static const std::vector<SystemAxis> all{rules(), exchanges(), syncs(), codecs(), orders()};
  return all;
}

const SystemAxis& system_axis(const std::string& name) {
  const auto& all = system_axes();
  const auto it = std::ranges::find(all, name, &SystemAxis::name);
  invariant(it != all.end(), "there are five axes");
  return *it;
}

const Part* find_part(const std::string& axis, const std::string& part_name) {
  const auto& parts = system_axis(axis).parts;
  const auto it = std::ranges::find(parts, part_name, &Part::name);
  return it == parts.end() ? nullptr : &*it;
}

const Part& part_of(const std::string& axis, const Options& table) {
  const auto name = table.items.find("name");
  const auto* text = name == table.items.end() ? nullptr : std::get_if<std::string>(&name->second.value);
  const Part* part = text ? find_part(axis, *text) : nullptr;
  return part ? *part : *find_part(axis, system_axis(axis).usual);
}

void check_part(const std::string& axis, OptionReader& table) {
  std::vector<std::string> names;
  for (const Part& part : system_axis(axis).parts) names.push_back(part.name);
  table.require("name", fmt::format("one of {}", fmt::join(names, ", ")));
  const Part* part = find_part(axis, table.choice("name", system_axis(axis).usual, names));
  if (table.has("name") && !find_part(axis, table.text("name", ""))) return;  // its settings mean nothing
  for (const Knob& knob : part->knobs) table.ignore(knob.key);
  table.done();
}

}  // namespace echelon
