#include "world/os/event_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "world/os/host.h"
#include "world/os/process_facts.h"

namespace echelon {

namespace {

constexpr std::uint64_t ring_magic = 0x3130676e69726345;  // "Ecring01"

double unix_now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

using Text = std::array<char, EventRing::text_bytes>;

void put(Text& to, std::string_view text) {
  const std::size_t count = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), count);
  to[count] = 0;
}

// The file may be anybody's: nothing but what can be printed comes out of it.
std::string taken_from(const Text& text) {
  std::string out;
  for (const char c : text) {
    if (c == 0) break;
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out;
}

struct RingEvent {
  enum Kind : std::uint32_t { text, sends, receives };
  std::atomic<std::uint64_t> number;  // 0: none
  double time;
  std::int64_t step;
  std::int32_t peer;
  Kind kind;
  Label label;  // of a message, and how long it is
  std::uint64_t bytes;
  Text what;  // else
};

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0 && seconds < 1e11; }

}  // namespace

struct EventRing::Memory {
  std::uint64_t magic;
  std::int32_t rank, ranks, process;
  std::uint64_t process_began;
  Text host;
  double began;
  std::atomic<double> stepped, since, saving_since;
  std::atomic<std::int64_t> step;
  std::atomic<std::uint64_t> batches;
  RingTimes times;
  Text activity, ended;
  std::atomic<std::int32_t> waiting_for;
  std::atomic<std::uint64_t> events;  // so far
  RingEvent ring[EventRing::most_events];
};

EventRing::EventRing(const std::string& path, int rank, int ranks) {
  void* at = MAP_FAILED;
  const int fd = path.empty() ? -1 : ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0) {
    struct stat s {};
    // All blocks from the start: a disk that fills up later must not kill who writes into the mapping.
    const bool room = ::fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && ::posix_fallocate(fd, 0, sizeof(Memory)) == 0;
    if (room) at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
  }
  if (at == MAP_FAILED)
    at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;
  std::memset(at, 0, sizeof(Memory));
  memory_ = new (at) Memory{};
  memory_->rank = rank, memory_->ranks = ranks, memory_->process = process_id();
  memory_->process_began = look_at_process(memory_->process).began;
  memory_->began = memory_->since = memory_->stepped = unix_now();
  memory_->waiting_for = -1;
  put(memory_->host, host_name());
  std::atomic_ref(memory_->magic).store(ring_magic, std::memory_order_release);
}

EventRing::~EventRing() {
  if (memory_) ::munmap(memory_, sizeof(Memory));
}

template <typename Fill>
void EventRing::add(int peer, const Fill& fill) {
  if (!memory_) return;
  const std::uint64_t number = memory_->events.fetch_add(1, std::memory_order_relaxed) + 1;
  RingEvent& e = memory_->ring[number % most_events];
  e.number.store(0, std::memory_order_relaxed);
  e.time = unix_now();
  e.step = memory_->step.load(std::memory_order_relaxed);
  e.peer = peer;
  fill(e);
  e.number.store(number, std::memory_order_release);
}

void EventRing::note(std::string_view what, int peer) {
  add(peer, [&](auto& e) { e.kind = RingEvent::text, put(e.what, what); });
}

void EventRing::message(bool sends, const Label& label, int peer, std::size_t bytes) {
  add(peer,
      [&](auto& e) { e.kind = sends ? RingEvent::sends : RingEvent::receives, e.label = label, e.bytes = bytes; });
}

void EventRing::set_activity(std::string_view what) {
  if (!memory_) return;
  const std::string_view now(memory_->activity.data());
  if (now == what.substr(0, text_bytes - 1)) return;
  if (what == reading) {
    memory_->batches.fetch_add(1, std::memory_order_relaxed);
    memory_->stepped.store(unix_now(), std::memory_order_relaxed);
  }
  put(memory_->activity, what);
  memory_->since.store(unix_now(), std::memory_order_relaxed);
  note(what);
}

void EventRing::set_waiting_for(int peer) {
  if (!memory_) return;
  memory_->waiting_for.store(peer, std::memory_order_relaxed);
  if (peer >= 0) note("waits", peer);
}

void EventRing::end_step(std::int64_t step, const RingTimes& times) {
  if (!memory_) return;
  memory_->times = times;
  memory_->step.store(step, std::memory_order_relaxed);
  memory_->stepped.store(unix_now(), std::memory_order_relaxed);
  note("step done");
}

void EventRing::set_saving(bool saving) {
  if (!memory_) return;
  if (saving == (memory_->saving_since.load(std::memory_order_relaxed) > 0)) return;
  memory_->saving_since.store(saving ? unix_now() : 0, std::memory_order_relaxed);
  note(saving ? "begins to write a checkpoint" : "the checkpoint is written");
}

void EventRing::end(std::string_view why) {
  if (memory_) put(memory_->ended, why);
}

const std::size_t EventRing::file_bytes = sizeof(Memory);

std::optional<RingView> EventRing::read(const std::string& path) {
  std::byte bytes[sizeof(Memory) + 1];
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  const ssize_t got = ::pread(fd, bytes, sizeof bytes, 0);
  ::close(fd);
  return got < 0 ? std::nullopt : parse(std::span(bytes).first(static_cast<std::size_t>(got)));
}

std::optional<RingView> EventRing::parse(std::span<const std::byte> file) {
  alignas(Memory) std::byte bytes[sizeof(Memory)];
  if (file.size() != sizeof bytes) return std::nullopt;
  std::ranges::copy(file, bytes);
  const Memory& m = *reinterpret_cast<const Memory*>(bytes);
  if (m.magic != ring_magic || m.ranks < 1 || m.rank < 0 || m.rank >= m.ranks || m.process < 1) return std::nullopt;
  RingView v{.rank = m.rank,
             .ranks = m.ranks,
             .process = m.process,
             .process_began = m.process_began,
             .host = taken_from(m.host),
             .began = m.began,
             .stepped = m.stepped,
             .step = m.step,
             .batches = m.batches,
             .times = m.times,
             .activity = taken_from(m.activity),
             .since = m.since,
             .waiting_for = m.waiting_for,
             .saving_since = m.saving_since,
             .ended = taken_from(m.ended),
             .events = {}};
  const RingTimes& t = v.times;
  for (const double time : {v.began, v.stepped, v.since, v.saving_since, t.input, t.compute, t.exchange, t.waiting})
    if (!is_time(time)) return std::nullopt;
  if (v.waiting_for < -1 || v.waiting_for >= v.ranks) return std::nullopt;
  const std::uint64_t last = m.events;
  for (std::uint64_t n = last > most_events ? last - most_events + 1 : 1; n <= last && n > 0; ++n) {
    const RingEvent& e = m.ring[n % most_events];
    if (e.number != n || !is_time(e.time)) continue;  // it is being written, or was when its rank was killed
    std::string what =
        e.kind == RingEvent::text
            ? taken_from(e.what)
            : fmt::format("{} {} {}, part {}: {} bytes", e.kind == RingEvent::sends ? "sends" : "receives",
                          to_string(e.label.kind), e.label.number, e.label.step, e.bytes);
    v.events.push_back({e.time, e.step, e.peer, std::move(what)});
  }
  return v;
}

std::vector<RingView> EventRing::read_all(const std::string& folder) {
  std::vector<RingView> all;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none))
    if (file.path().extension() == ".ring")
      if (auto ring = read(file.path())) all.push_back(std::move(*ring));
  const auto newest = std::ranges::max_element(all, {}, &RingView::began);
  if (newest == all.end()) return all;
  std::erase_if(all, [ranks = newest->ranks](const RingView& r) { return r.ranks != ranks; });  // of other generations
  std::ranges::sort(all, {}, &RingView::rank);
  return all;
}

}  // namespace echelon
