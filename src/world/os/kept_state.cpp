#include "world/os/kept_state.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace echelon {

namespace {

constexpr std::size_t kept_page = 4096;
constexpr std::size_t longest_path = 4096;

std::size_t in_pages(std::size_t bytes) { return (bytes + kept_page - 1) / kept_page * kept_page; }

std::size_t size_of(std::span<const StateSpan> tensors) {
  std::size_t sum = 0;
  for (const StateSpan& t : tensors) sum += t.bytes.size();
  return sum;
}

}  // namespace

struct KeptState::Slot {
  std::atomic<std::uint64_t> parts[most_parts];  // which state each part is of; 0: none
  Position position;
  std::uint64_t tensor_bytes, text_bytes;
  char text[most_text_bytes];
};

struct KeptState::Header {
  std::atomic<std::int32_t> parts;
  std::atomic<std::int32_t> asked_workers;
  std::atomic<bool> change_wanted, outdated;
  std::atomic<double> valid_until, pace;
  std::atomic<std::int64_t> furthest;
  std::atomic<std::uint32_t> folder_bytes, wish_bytes;
  char folder[longest_path], wish[KeptState::longest_wish];
  Slot slots[2];
};

KeptState::KeptState(std::size_t most_bytes)
    : most_bytes_(in_pages(most_bytes)), mapped_(in_pages(sizeof(Header)) + 2 * most_bytes_ + most_parts * note_bytes) {
  void* at = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) fail("cannot keep the state of a training in memory (mmap: {})", std::strerror(errno));
  base_ = static_cast<std::byte*>(at);
  new (base_) Header{};
  set_valid_until(std::numeric_limits<double>::infinity());
}

KeptState::~KeptState() { munmap(base_, mapped_); }

KeptState::Slot& KeptState::slot(std::uint64_t number) const {
  return reinterpret_cast<Header*>(base_)->slots[number % 2];
}

std::byte* KeptState::bytes(std::uint64_t number) const {
  return base_ + in_pages(sizeof(Header)) + (number % 2) * most_bytes_;
}

std::span<std::byte> KeptState::notes(int place) const {
  invariant(place >= 0 && place < most_parts, "a rank's notes have a place");
  return {base_ + in_pages(sizeof(Header)) + 2 * most_bytes_ + static_cast<std::size_t>(place) * note_bytes,
          note_bytes};
}

std::uint64_t KeptState::newest() const {
  const Header& header = *reinterpret_cast<const Header*>(base_);
  std::uint64_t best = 0;
  for (const Slot& s : header.slots) {
    const std::uint64_t first = s.parts[0].load(std::memory_order_acquire);
    const int parts = header.parts.load(std::memory_order_relaxed);
    if (first > best && std::all_of(s.parts, s.parts + parts, [&](const std::atomic<std::uint64_t>& p) {
          return p.load(std::memory_order_acquire) == first;
        }))
      best = first;
  }
  return best;
}

void KeptState::begin(int parts) {
  Header& header = *reinterpret_cast<Header*>(base_);
  invariant(parts >= 1 && parts <= most_parts, "a state is kept in at least one part and not in too many");
  const std::uint64_t whole = header.parts.load(std::memory_order_relaxed) > 0 ? newest() : 0;
  for (Slot& s : header.slots)
    for (std::atomic<std::uint64_t>& p : s.parts) p.store(0, std::memory_order_relaxed);
  header.parts.store(parts, std::memory_order_relaxed);
  header.change_wanted = header.outdated = false;
  if (whole > 0)
    for (int p = 0; p < parts; ++p) slot(whole).parts[p].store(whole, std::memory_order_release);
  next_ = whole + 1;
}

int KeptState::parts() const { return reinterpret_cast<const Header*>(base_)->parts.load(std::memory_order_relaxed); }

bool KeptState::has_state() const { return newest() > 0; }

std::int64_t KeptState::step() const {
  const std::uint64_t number = newest();
  return number > 0 ? slot(number).position.step : 0;
}

void KeptState::count_step(std::int64_t step) {
  std::atomic<std::int64_t>& most = reinterpret_cast<Header*>(base_)->furthest;
  for (std::int64_t was = most.load(std::memory_order_relaxed); step > was && !most.compare_exchange_weak(was, step);) {
  }
}

std::int64_t KeptState::furthest() const { return reinterpret_cast<const Header*>(base_)->furthest; }

void KeptState::set_folder(std::string_view path) {
  Header& header = *reinterpret_cast<Header*>(base_);
  if (path.size() > longest_path) bad_input("the path of the run's folder is too long: {} bytes", path.size());
  std::ranges::copy(path, header.folder);
  header.folder_bytes.store(static_cast<std::uint32_t>(path.size()), std::memory_order_release);
}

std::string KeptState::folder() const {
  const Header& header = *reinterpret_cast<const Header*>(base_);
  return std::string(header.folder, header.folder_bytes.load(std::memory_order_acquire));
}

void KeptState::ask_for_workers(int workers) {
  reinterpret_cast<Header*>(base_)->asked_workers.store(workers, std::memory_order_release);
}

int KeptState::take_asked_workers() {
  return reinterpret_cast<Header*>(base_)->asked_workers.exchange(0, std::memory_order_acq_rel);
}

void KeptState::set_wish(std::string_view text) {
  Header& header = *reinterpret_cast<Header*>(base_);
  if (text.size() > longest_wish) fail("a request of {} bytes is too long for the launcher", text.size());
  std::ranges::copy(text, header.wish);
  header.wish_bytes.store(static_cast<std::uint32_t>(text.size()), std::memory_order_release);
}

std::string KeptState::take_wish() {
  Header& header = *reinterpret_cast<Header*>(base_);
  return std::string(header.wish, header.wish_bytes.exchange(0, std::memory_order_acq_rel));
}

void KeptState::want_change(bool wanted) { reinterpret_cast<Header*>(base_)->change_wanted = wanted; }
bool KeptState::change_wanted() const {
  return reinterpret_cast<const Header*>(base_)->change_wanted.load(std::memory_order_relaxed);
}
void KeptState::set_valid_until(double time) { reinterpret_cast<Header*>(base_)->valid_until = time; }
double KeptState::valid_until() const { return reinterpret_cast<const Header*>(base_)->valid_until; }
void KeptState::set_pace(double seconds) { reinterpret_cast<Header*>(base_)->pace = seconds; }
double KeptState::pace() const { return reinterpret_cast<const Header*>(base_)->pace; }
void KeptState::set_outdated() { reinterpret_cast<Header*>(base_)->outdated = true; }
bool KeptState::outdated() const { return reinterpret_cast<const Header*>(base_)->outdated; }

void KeptState::write(int part, const Position& position, std::string_view text, std::span<const StateSpan> tensors) {
  const std::uint64_t number = next_++;
  const std::uint64_t whole = newest();
  if (whole > 0 && whole % 2 == number % 2) return;
  const std::size_t all = size_of(tensors);
  if (all > most_bytes_ || text.size() > most_text_bytes)
    fail("a state of {} bytes is larger than what was set apart to keep it", all);
  Slot& s = slot(number);
  std::atomic<std::uint64_t>& mark = s.parts[part];
  mark.exchange(0, std::memory_order_acq_rel);  // before anything of the part is written
  const auto parts = static_cast<std::size_t>(reinterpret_cast<Header*>(base_)->parts.load(std::memory_order_relaxed));
  const auto border = [&](std::size_t p) { return p == parts ? all : all / parts * p / 64 * 64; };
  std::size_t from = border(static_cast<std::size_t>(part));
  const std::size_t to = border(static_cast<std::size_t>(part) + 1);
  std::size_t first = 0;  // byte of the tensor that is looked at
  for (const StateSpan& t : tensors) {
    const std::size_t last = first + t.bytes.size();
    if (from < to && from < last) {
      const std::size_t count = std::min(to, last) - from;
      std::memcpy(bytes(number) + from, t.bytes.data() + (from - first), count);
      from += count;
    }
    first = last;
  }
  if (part == 0) {
    s.position = position;
    s.tensor_bytes = all;
    s.text_bytes = text.size();
    std::ranges::copy(text, s.text);
  }
  mark.store(number, std::memory_order_release);
}

KeptState::Position KeptState::read_position(std::string& text) const {
  const std::uint64_t number = newest();
  if (number == 0) fail("no state is kept");
  const Slot& s = slot(number);
  text.assign(s.text, s.text_bytes);
  return s.position;
}

void KeptState::read(std::span<const StateSpan> tensors) const {
  const std::uint64_t number = newest();
  if (number == 0) fail("no state is kept");
  const Slot& s = slot(number);
  if (s.tensor_bytes != size_of(tensors))
    fail("a state of {} bytes is kept, and {} are wanted", s.tensor_bytes, size_of(tensors));
  const std::byte* from = bytes(number);
  for (const StateSpan& t : tensors) {
    std::memcpy(t.bytes.data(), from, t.bytes.size());
    from += t.bytes.size();
  }
}

std::size_t KeptState::bytes() const {
  const std::uint64_t number = newest();
  return number > 0 ? slot(number).tensor_bytes : 0;
}

void KeptState::read_end(std::span<std::byte> last) const {
  const std::uint64_t number = newest();
  if (number == 0) fail("no state is kept");
  if (slot(number).tensor_bytes < last.size())
    fail("a state of {} bytes is kept, and {} are wanted", slot(number).tensor_bytes, last.size());
  std::memcpy(last.data(), bytes(number) + (slot(number).tensor_bytes - last.size()), last.size());
}

}  // namespace echelon
