#pragma once
// Exchanges the buckets of a gradient in a task of its own while the cores still compute: a bucket is complete -> the
// task exchanges it -> the driving thread applies the result. What "exchange" means is the owner's: a sum over ranks,
// or pushes to servers.
//
//   BucketPipeline pipeline(group, {.exchange = [&](Group& g, std::uint64_t, std::size_t b) { sum(g, bucket[b]); }});
//   pipeline.set_buckets(n);
//   for each step:
//     pipeline.begin();                          // then any core: pipeline.complete(b), once for each bucket
//     ... forward and backward ...
//     for each bucket: pipeline.wait(b), apply   // or pipeline.finish(): all of it
//
// One thread drives it: all but complete(), which any thread may call. A step may begin before the last one is
// finished; the task takes steps and buckets in order, the same on all ranks. When an exchange throws, nothing further
// is exchanged, and wait() and finish() rethrow. Allocates nothing after set_buckets().

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "collective/group.h"

namespace echelon {

class BucketPipeline {
 public:
  struct Stages {
    // In the task, for each bucket in order, when it is complete. Steps count from 1. `group` is the task's own.
    std::function<void(Group& group, std::uint64_t step, std::size_t bucket)> exchange;
    // In the task, after the step's last bucket and end_backward(): what must not happen while backward still reads the
    // weights. May be empty; then nobody needs to call end_backward().
    std::function<void(Group& group, std::uint64_t step)> conclude = {};
  };

  // Collective. The group, and what the stages use, must outlive it.
  BucketPipeline(Group& group, Stages stages);
  // In the middle of a step: buckets that are not complete are not exchanged. While an exception unwinds, it also
  // aborts the rank, because the others may be waiting for the rest of the step.
  ~BucketPipeline();
  BucketPipeline(const BucketPipeline&) = delete;
  BucketPipeline& operator=(const BucketPipeline&) = delete;

  void set_buckets(std::size_t count);  // before the first step, or after finish()
  std::size_t buckets() const { return ready_.size(); }

  std::uint64_t begin();              // returns the step's number
  void complete(std::size_t bucket);  // of the step that was begun last
  void end_backward();
  void wait(std::size_t bucket);  // until the bucket of the last step is exchanged
  void finish();                  // until all of the last step is done, `conclude` included

  std::uint64_t steps() const { return begun_; }
  Group& group() { return group_; }  // to read its statistics, after finish()

 private:
  void work();
  bool carry_out(std::uint64_t step);  // false if the pipeline is closing
  void await(std::uint64_t progress);

  Group group_;
  World& world_;
  Stages stages_;
  std::vector<std::unique_ptr<Event>> ready_;  // by bucket: how often it was complete
  std::uint64_t without_ = 0;                  // steps that were begun before these buckets were set
  std::uint64_t begun_ = 0;                    // steps
  std::uint64_t before_ = 0, after_ = 0;       // progress before and after the last step
  std::uint64_t progressed_ = 0;               // the task's: progress after the step that it carries out
  std::unique_ptr<Event> started_;             // counts steps
  std::unique_ptr<Event> computed_;            // counts backward passes
  std::unique_ptr<Event> progress_;            // counts exchanged buckets, and one more for each step
  std::atomic<bool> closing_ = false, failed_ = false;
  std::exception_ptr failure_;  // read only if failed_
  std::unique_ptr<Task> task_;  // last: ends before what it uses
};

}  // namespace echelon
