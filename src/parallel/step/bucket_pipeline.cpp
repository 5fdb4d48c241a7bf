#include "parallel/step/bucket_pipeline.h"

#include <limits>

namespace echelon {

namespace {
constexpr double forever = std::numeric_limits<double>::infinity();  // the exchanges inside have their own time limits
}

BucketPipeline::BucketPipeline(Group& group, Stages stages)
    : group_(group.dup()),
      world_(group.world()),
      stages_(std::move(stages)),
      started_(world_.make_event()),
      computed_(world_.make_event()),
      progress_(world_.make_event()),
      task_(world_.spawn("exchange", [this] { work(); })) {}

BucketPipeline::~BucketPipeline() {
  if (std::uncaught_exceptions() > 0 && progress_->count() < after_) world_.abort("it stopped in the middle of a step");
  closing_ = true;
  for (auto& bucket : ready_) bucket->notify();
  computed_->notify();
  started_->notify();
}

void BucketPipeline::set_buckets(std::size_t count) {
  ready_.clear();
  for (std::size_t b = 0; b < count; ++b) ready_.push_back(world_.make_event());
  without_ = begun_;
}

std::uint64_t BucketPipeline::begin() {
  ++begun_;
  before_ = after_;
  after_ += ready_.size() + 1;
  started_->notify();
  return begun_;
}

void BucketPipeline::complete(std::size_t bucket) { ready_[bucket]->notify(); }

void BucketPipeline::end_backward() { computed_->notify(); }

void BucketPipeline::wait(std::size_t bucket) { await(before_ + bucket + 1); }

void BucketPipeline::finish() { await(after_); }

void BucketPipeline::await(std::uint64_t progress) {
  progress_->wait(progress, forever);
  if (failed_) std::rethrow_exception(failure_);
}

void BucketPipeline::work() {
  for (std::uint64_t step = 1;; ++step) {
    started_->wait(step, forever);
    if (closing_) return;
    progressed_ += ready_.size() + 1;
    try {
      if (!failed_ && !carry_out(step)) return;
    } catch (...) {
      failure_ = std::current_exception();
      failed_ = true;
    }
    while (progress_->count() < progressed_) progress_->notify();  // whoever waits learns of a failure
  }
}

bool BucketPipeline::carry_out(std::uint64_t step) {
  for (std::size_t b = 0; b < ready_.size(); ++b) {
    ready_[b]->wait(step - without_, forever);
    if (closing_) return false;
    stages_.exchange(group_, step, b);
    progress_->notify();
  }
  if (!stages_.conclude) return true;
  computed_->wait(step, forever);
  if (closing_) return false;
  stages_.conclude(group_, step);
  return true;
}

}  // namespace echelon
