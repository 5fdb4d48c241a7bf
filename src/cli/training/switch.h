#pragma once
// What a run with --elastic is asked for that its ranks cannot do themselves (`echelon ctl RUN resize | switch`): the
// launcher does it between two generations of workers.

#include <memory>
#include <string>

#include "cli/training/elastic.h"
#include "track/control.h"

namespace echelon::cli {

// The settings with the part of a system that a request names; `words`, which name it, say more if there is more to
// say. BadInput if it cannot be.
TrainSettings switched(TrainSettings settings, const ControlRequest& request, std::string& words);

// Another number of workers (`asked`, unless it is KeptState::same_workers), another system or codec (`wish`, as
// track/control.h writes it). Changes settings and job accordingly, or leaves both as they are; says which, in words.
std::string carry_out(const std::string& wish, int asked, TrainSettings& settings,
                      std::shared_ptr<const ReadyJob>& ready, const PrepareJob& prepare);

}  // namespace echelon::cli
