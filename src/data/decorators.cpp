#include "data/decorators.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/files/fingerprint.h"
#include "data/permutation.h"

namespace echelon::data {

namespace {

class Shuffled : public Dataset {
 public:
  explicit Shuffled(DatasetPtr inner) : Dataset(inner->info()), inner_(std::move(inner)) {
    if (info().streams > 0) bad_input("a text read as streams must stay in order: turn shuffling off");
    info().random = true;
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    inner_->get(Permutation(context.seed, context.epoch, size())(index), context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(Permutation(context.seed, context.epoch, size())(index), context);
  }

 private:
  DatasetPtr inner_;
};

// The samples from `first` on.
class Subset : public Dataset {
 public:
  Subset(DatasetPtr inner, std::uint64_t first, std::uint64_t count)
      : Dataset(inner->info()), inner_(std::move(inner)), first_(first) {
    if (count != inner_->size())
      info().fingerprint = Fingerprint().add(info().fingerprint).add(first).add(std::uint64_t{1}).add(count).hex();
    info().size = count;
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    inner_->get(first_ + index, context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(first_ + index, context);
  }
  std::int32_t label(std::uint64_t index) const override { return inner_->label(first_ + index); }

 private:
  DatasetPtr inner_;
  std::uint64_t first_;
};

// A fixed shuffling, whatever the context: what held_out() cuts.
class FixedOrder : public Dataset {
 public:
  explicit FixedOrder(DatasetPtr inner)
      : Dataset(inner->info()), inner_(std::move(inner)), order_(/*seed=*/0, /*epoch=*/0, size()) {}
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    inner_->get(order_(index), context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(order_(index), context);
  }
  std::int32_t label(std::uint64_t index) const override { return inner_->label(order_(index)); }

 private:
  DatasetPtr inner_;
  Permutation order_;
};

class Concatenated : public Dataset {
 public:
  explicit Concatenated(std::vector<DatasetPtr> parts) : Dataset(parts.front()->info()), parts_(std::move(parts)) {
    info().size = 0;
    Fingerprint all;
    for (const auto& p : parts_) {
      if (p->fields() != fields())
        bad_input("parts of one data set differ: one has {}, another {}", to_string(fields().front()),
                  to_string(p->fields().front()));
      ends_.push_back(info().size += p->size());
      info().classes = std::max(info().classes, p->info().classes);
      info().random |= p->info().random;
      all.add(p->info().fingerprint);
    }
    info().fingerprint = all.hex();
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    const std::size_t part = part_of(index);
    parts_[part]->get(index - begin_of(part), context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    const std::size_t part = part_of(index);
    return begin_of(part) + parts_[part]->origin(index - begin_of(part), context);
  }

 private:
  std::size_t part_of(std::uint64_t index) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  }
  std::uint64_t begin_of(std::size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<DatasetPtr> parts_;
  std::vector<std::uint64_t> ends_;
};

class Cached : public Dataset {
 public:
  Cached(DatasetPtr inner, std::uint64_t memory_limit)
      : Dataset(inner->info()), inner_(std::move(inner)), state_(new std::atomic<State>[size()]()) {
    if (info().random) bad_input("a data set that is random cannot be cached: cache it below the augmentation");
    for (const auto& f : fields()) offsets_.push_back(sample_bytes_), sample_bytes_ += (f.bytes() + 3) / 4 * 4;
    if (sample_bytes_ > 0 && size() > memory_limit / sample_bytes_)
      bad_input("caching {} samples of {} bytes needs {} MiB, but the limit is {} MiB: turn caching off or raise it",
                size(), sample_bytes_, (size() >> 10) * sample_bytes_ >> 10, memory_limit >> 20);
    memory_ = std::make_unique_for_overwrite<std::byte[]>(size() * sample_bytes_);
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    auto& state = state_[index];
    std::byte* const place = memory_.get() + index * sample_bytes_;
    if (state.load(std::memory_order_acquire) == State::kept) {
      for (std::size_t f = 0; f < out.size(); ++f) std::memcpy(out[f], place + offsets_[f], fields()[f].bytes());
      return;
    }
    inner_->get(index, context, out);
    State absent = State::absent;  // whoever comes first keeps it; another thread at the same sample does without
    if (!state.compare_exchange_strong(absent, State::being_kept, std::memory_order_relaxed)) return;
    for (std::size_t f = 0; f < out.size(); ++f) std::memcpy(place + offsets_[f], out[f], fields()[f].bytes());
    state.store(State::kept, std::memory_order_release);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(index, context);
  }
  std::int32_t label(std::uint64_t index) const override { return inner_->label(index); }

 private:
  enum class State : std::uint8_t { absent, being_kept, kept };
  DatasetPtr inner_;
  std::unique_ptr<std::atomic<State>[]> state_;
  std::vector<std::size_t> offsets_;
  std::size_t sample_bytes_ = 0;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

DatasetPtr shuffled(DatasetPtr inner) { return std::make_shared<Shuffled>(std::move(inner)); }

DatasetPtr subset(DatasetPtr inner, std::uint64_t first, std::uint64_t count) {
  if (first > inner->size() || count > inner->size() - first)
    bad_input("samples {} to {} were asked for, but the data set has {}", first, first + count, inner->size());
  return std::make_shared<Subset>(std::move(inner), first, count);
}

DatasetPtr concatenated(std::vector<DatasetPtr> parts) {
  if (parts.empty()) bad_input("a data set needs at least one part");
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_shared<Concatenated>(std::move(parts));
}

DatasetPtr held_out(DatasetPtr inner, double fraction, bool train) {
  if (!(fraction > 0 && fraction < 1)) bad_input("the part held out lies between 0 and 1, not {}", fraction);
  const std::uint64_t size = inner->size(), test = static_cast<std::uint64_t>(std::llround(fraction * size));
  auto mixed = std::make_shared<FixedOrder>(std::move(inner));
  return train ? subset(mixed, 0, size - test) : subset(mixed, size - test, test);
}

DatasetPtr cached(DatasetPtr inner, std::uint64_t memory_limit) {
  return std::make_shared<Cached>(std::move(inner), memory_limit);
}

}  // namespace echelon::data
