#pragma once
// One system in detail: what `echelon systems show` prints, as text or as JSON.

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "recipe/system_file.h"

namespace echelon::cli {

// A system's row in the taxonomy (Langer et al. 2020): its name, its paper, and what it is on every axis of it.
std::vector<std::pair<std::string, std::string>> taxonomy_columns(const SystemFile& system);

// What `systems show --json` prints. BadInput as below.
nlohmann::ordered_json system_json(const std::string& name, int workers, std::size_t batch);

// Prints it, with its bytes per step for that many workers and samples of the global batch. BadInput if there is no
// such system or it cannot be read.
void show_system(const std::string& name, int workers, std::size_t batch, bool json);

}  // namespace echelon::cli
