#pragma once
// trace.json of a run: for every rank what its driving thread did when (steps, waiting for input and for other ranks,
// updates, evaluations), every operation of every core, and every message that it sent, all on rank 0's clock. Watches
// the trainer from its construction on. All ranks have one.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parallel/engine.h"
#include "parallel/team/team.h"
#include "run/events.h"

namespace echelon::cli {

class TraceListener : public RunListener {
 public:
  TraceListener(Team& team, Engine& engine);
  void on_span(const Span& span) override { spans_.push_back(span); }
  // All ranks call it; rank 0 writes the file, and tells if it could not.
  void write(Disk& disk, const std::string& path, const std::function<void(const std::string&)>& tell);

 private:
  struct Operation {
    const Node* node;
    double begin, end;
  };
  struct PlannedTask {
    StageTask task;
    double begin, end;
  };
  static constexpr std::size_t most_operations = 200'000;  // on a core: what a viewer can still show

  enum class Kind : std::uint32_t { run, forward, backward, message };
  struct Bar {  // as ranks send it to each other
    double begin, end;
    std::uint32_t timeline;  // 0: the driving thread; then the cores, then the micro-batches; or of_messages
    std::uint32_t name;      // its number in the sender's names
    Kind kind;
    std::int32_t to;  // of a message, and how long it is
    double bytes;
  };
  static constexpr std::uint32_t of_messages = 1u << 20;  // a timeline behind all others
  struct Bars {
    std::vector<Bar> list;
    std::vector<char> names;  // one after the other, each with a zero at its end
    std::uint32_t name_count = 0;
  };
  Bars bars() const;  // of this rank
  template <typename T>
  std::vector<std::vector<T>> gather(const std::vector<T>& mine);

  Team& team_;
  double offset_;  // of rank 0's clock from ours
  double origin_;
  std::vector<Span> spans_;
  std::vector<PlannedTask> tasks_;                  // of a split model: a row for each micro-batch
  std::vector<std::vector<Operation>> operations_;  // by core
};

}  // namespace echelon::cli
