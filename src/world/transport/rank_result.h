#pragma once
// What a process that is one rank of a job tells whoever called it (world/launch.h): RankFailed with the first
// failure's rank and text. BadInput stays BadInput.

#include "world/failure.h"

namespace echelon {

template <typename Body>
void as_rank(int rank, Body&& body) {
  try {
    body();
  } catch (const BadInput&) {
    throw;
  } catch (const RankFailed&) {
    throw;
  } catch (const PeerLost& e) {
    throw RankFailed(e.rank(), e.reason());
  } catch (const std::exception& e) {
    throw RankFailed(rank, e.what());
  }
}

}  // namespace echelon
