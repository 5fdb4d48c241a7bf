#pragma once
// The metrics of runs in memory, as columns, for curves. A file is read once; what a live run adds to it is read from
// where the last look ended. Files that became shorter or were replaced (a resumed run) are read anew. The runs that
// were not asked for longest are forgotten when there are too many numbers.
//
// Not thread-safe.

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "track/run.h"

namespace echelon::web {

struct Columns {
  std::vector<double> step, epoch, time;
  std::map<std::string, std::vector<double>> values;  // of the same length; what a point does not have is not a number
  std::vector<double> column(const std::string& name) const;  // by any of these names; empty if there is none
};

class SeriesStore {
 public:
  explicit SeriesStore(Disk& disk, std::size_t most_numbers = 24'000'000) : disk_(disk), most_(most_numbers) {}

  // Up to date. The reference is good until the next call.
  const Columns& columns(const RunFolder& folder);
  std::size_t numbers() const { return numbers_; }  // in memory

 private:
  struct Entry {
    std::string path;
    Columns columns;
    std::uint64_t read = 0;  // bytes of whole lines
    std::uint64_t inode = 0;
    std::size_t numbers = 0;
  };
  void read_more(Entry& entry);
  Disk& disk_;
  const std::size_t most_;
  std::size_t numbers_ = 0;
  std::list<Entry> entries_;  // the one asked for last is the first
};

}  // namespace echelon::web
