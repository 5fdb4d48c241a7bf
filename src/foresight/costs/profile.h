#pragma once
// What is known about this machine: the costs of operations and of messages, as they were measured. Kept in a file of
// the user's, so that everything is measured once:
//
//   $XDG_CACHE_HOME/echelon/foresight/profile.json, or ~/.cache/...
//
// The file is written as a whole, beside the old one, then renamed. Whatever reads it trusts nothing in it: numbers are
// finite and in range, texts are short, nothing is there twice. A file of another machine (processor, cores) or of
// another version counts as none. Functions without state.

#include <map>
#include <string>

#include "collective/link_costs.h"
#include "foresight/costs/op_costs.h"
#include "world/os/disk.h"

namespace echelon::foresight {

// Of a message over a link of --link, in seconds: what it takes besides its bytes and the link's own latency.
struct WireCost {
  double quickest = 0;  // of a few: what ranks measure themselves, and choose their buckets by
  double usual = 0;     // with everybody asleep who waits for it
  friend bool operator==(const WireCost&, const WireCost&) = default;
};

struct Profile {
  std::string processor;  // its name
  int cores = 1;          // that this process may use
  OpCosts ops;
  std::map<int, LinkCosts> links;  // between so many ranks on this machine
  std::map<int, WireCost> wires;   // the same over --link
  // Between two hosts, by their names in order, as the last run over both has measured it.
  std::map<std::pair<std::string, std::string>, PairCost> hosts;

  const PairCost* between(const std::string& a, const std::string& b) const;  // null: not known
  friend bool operator==(const Profile&, const Profile&);
};

inline constexpr std::size_t most_profile_bytes = 64 << 20;

std::string profile_text(const Profile& profile);
// BadInput "WHERE: ..." if it is no profile.
Profile parse_profile(std::string_view text, const std::string& where);

// The folder of what foresight keeps; empty if the user has none.
std::string usual_folder();

Profile empty_profile();  // of this machine
// That of this machine; empty if there is none, or if it is damaged (then `note` says so).
Profile load_profile(Disk& disk, const std::string& folder, std::string& note);
void save_profile(Disk& disk, const std::string& folder, const Profile& profile);  // nothing if `folder` is empty

}  // namespace echelon::foresight
