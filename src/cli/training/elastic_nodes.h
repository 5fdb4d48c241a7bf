#pragma once
// `echelon train --nnodes MIN:MAX`: machines (nodes) that join and leave a job while it runs. Each has a launcher,
// which keeps the training's state for its own ranks (world/os/kept_state.h) and agrees with the others on who is in
// (member/agent.h). When that changes, the ranks end after a step, or are lost; those of the next generation begin with
// the newest state that any node has.

#include <string>
#include <vector>

#include "cli/training/elastic.h"
#include "member/store.h"

namespace echelon::cli {

bool nodes_come_and_go(const TrainSettings& settings);

// Trains on this node until the job is over or this node has left. BadInput and Failure as run_on_world; Failure if too
// few nodes are there for too long. What changes at which step (settings.replayed) is known to all nodes: `prepare`
// makes the job of each stage before the first step.
void run_elastic_nodes(const TrainSettings& settings, const LaunchOptions& launch,
                       const std::shared_ptr<const ReadyJob>& ready, const PrepareJob& prepare);

// The store in which the nodes of such a job agree, and the beginning of the job's keys there.
std::unique_ptr<Store> open_job_store(const TcpOptions& options);
std::string job_prefix(const TcpOptions& options);

// What a node that joins without a recipe trains: the recipe, as it was resolved; its name.
struct PublishedRecipe {
  std::string name, toml, plan;
  int least = 1, most = 1;
  std::int64_t check_replicas = 0;
  std::vector<JournalLine> changes = {};
};
PublishedRecipe read_published(Store& store, const TcpOptions& options);  // BadInput if there is none

}  // namespace echelon::cli
