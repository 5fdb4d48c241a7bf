// Any bytes are a profile of a machine or the outcome of a prediction, or are refused with a reason; what was read is
// written and read again as the same.

#include <cstdint>
#include <string>

#include "base/error.h"
#include "foresight/costs/profile.h"
#include "foresight/outcomes.h"

int fuzz_profile(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  using namespace echelon::foresight;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Profile profile = parse_profile(text, "input");
    invariant(parse_profile(profile_text(profile), "again") == profile, "a profile comes back as it was written");
  } catch (const BadInput&) {
  }
  try {
    const Outcome outcome = parse_outcome(text, "input");
    invariant(parse_outcome(to_json(outcome).dump(), "again").predicted == outcome.predicted, "so does an outcome");
  } catch (const BadInput&) {
  }
  return 0;
}
