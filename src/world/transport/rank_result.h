#pragma once
// What a process that is one rank of a job throws to its caller (world/launch.h): RankFailed with the rank and the text
// of the first failure. BadInput stays BadInput.

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
    if (e.kind() == FailureKind::bad_input) throw BadInput(e.reason());
    throw RankFailed(e.rank(), e.reason());
  } catch (const std::exception& e) {
    throw RankFailed(rank, e.what());
  }
}

}  // namespace echelon
