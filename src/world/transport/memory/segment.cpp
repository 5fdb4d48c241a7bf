#include "world/transport/memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"
#include "world/failure.h"

namespace echelon {

namespace {

constexpr std::uint64_t segment_magic = 0x3130'6e6f'6c65'6863;  // "chelon01": changes with the layout
constexpr std::size_t page = 4096, large_page = std::size_t{2} << 20;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

std::byte* map(int descriptor, std::size_t bytes, int flags) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, 0);
  if (base == MAP_FAILED) {
    const int reason = errno;
    if (descriptor >= 0) close(descriptor);
    fail("cannot map {} bytes of shared memory (mmap: {})", bytes, std::strerror(reason));
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

struct Segment::Header {
  struct Region {
    char name[80];
    std::uint64_t offset, bytes;
  };
  std::atomic<std::uint64_t> ready{0};  // the magic number once the rest is there
  std::uint64_t bytes = 0, rank_blocks = 0, rings = 0, arena = 0;
  int ranks = 0;
  FirstFailure failure;
  std::atomic<std::uint32_t> locked{0};  // guards the regions
  std::uint32_t region_count = 0;
  std::uint64_t arena_end = 0;
  std::array<Region, 4096> regions{};
};

std::unique_ptr<Segment> Segment::create(Reach reach, int ranks, std::size_t arena_bytes) {
  invariant(ranks > 0, "a world has at least one rank");
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t rank_blocks = round_up(sizeof(Header), page);
  const std::size_t rings = round_up(rank_blocks + n * sizeof(RankBlock), page);
  const std::size_t arena = round_up(rings + n * n * sizeof(RingMemory), large_page);
  const std::size_t bytes = round_up(arena + arena_bytes, large_page);

  int descriptor = -1;
  if (reach == Reach::machine) {
    descriptor = memfd_create("echelon", MFD_CLOEXEC);
    if (descriptor < 0) fail("cannot get shared memory (memfd_create: {})", std::strerror(errno));
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
      const int reason = errno;
      close(descriptor);
      fail("cannot get {} bytes of shared memory (ftruncate: {})", bytes, std::strerror(reason));
    }
  }
  std::byte* base = map(descriptor, bytes, reach == Reach::machine ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
  std::unique_ptr<Segment> made(new Segment(reach, descriptor, base, bytes));
  auto* header = new (base) Header;
  header->bytes = bytes;
  header->rank_blocks = rank_blocks;
  header->rings = rings;
  header->arena = header->arena_end = arena;
  header->ranks = ranks;
  madvise(base + arena, bytes - arena, MADV_HUGEPAGE);  // a wish: fewer pages, fewer faults
  for (std::size_t i = 0; i < n; ++i) new (base + rank_blocks + i * sizeof(RankBlock)) RankBlock;
  // Rings are good as zeros, and are not touched before they are used.
  header->ready.store(segment_magic, std::memory_order_release);
  return made;
}

std::unique_ptr<Segment> Segment::attach(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) fail("cannot attach to shared memory at {} (open: {})", path, std::strerror(errno));
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0 || static_cast<std::size_t>(facts.st_size) < sizeof(Header)) {
    close(descriptor);
    bad_input("{} is no shared memory of this program: it is too small", path);
  }
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  std::byte* base = map(descriptor, bytes, MAP_SHARED);
  std::unique_ptr<Segment> made(new Segment(Reach::machine, descriptor, base, bytes));
  const Header& header = made->header();
  if (header.ready.load(std::memory_order_acquire) != segment_magic || header.bytes != bytes)
    bad_input("{} is no shared memory of this version of the program", path);
  return made;
}

Segment::~Segment() {
  munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

std::string Segment::path() const {
  invariant(reach_ == Reach::machine, "only a segment with the reach of a machine has a path");
  return fmt::format("/proc/{}/fd/{}", getpid(), descriptor_);
}

Segment::Header& Segment::header() const { return *std::launder(reinterpret_cast<Header*>(base_)); }
int Segment::ranks() const { return header().ranks; }
FirstFailure& Segment::failure() const { return header().failure; }

RankBlock& Segment::rank(int rank) const {
  std::byte* blocks = base_ + header().rank_blocks;
  return *std::launder(reinterpret_cast<RankBlock*>(blocks + static_cast<std::size_t>(rank) * sizeof(RankBlock)));
}

RingMemory& Segment::ring(int from, int to) const {
  const auto index = static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks()) + static_cast<std::size_t>(to);
  return *std::launder(reinterpret_cast<RingMemory*>(base_ + header().rings + index * sizeof(RingMemory)));
}

bool Segment::fail_world(int rank, std::string_view reason, FailureKind kind, bool writer_is_dead) const {
  if (!failure().set(rank, reason, kind, writer_is_dead)) return false;
  for (int r = 0; r < ranks(); ++r) this->rank(r).wake_up.wake_always();
  return true;
}

bool Segment::contains(std::span<const std::byte> bytes) const {
  return bytes.data() >= base_ && bytes.data() <= base_ + bytes_ &&
         bytes.size() <= static_cast<std::size_t>(base_ + bytes_ - bytes.data());
}

std::span<std::byte> Segment::region(std::string_view name, std::size_t bytes) {
  Header& h = header();
  invariant(name.size() < sizeof(Header::Region::name), "a region's name has fewer than 80 characters");
  WakeUp never;  // the lock is held briefly; if its holder died, the job has failed
  while (h.locked.exchange(1, std::memory_order_acquire) != 0) {
    if (failure().known()) failure().throw_peer_lost(fmt::format("shared memory `{}`", name));
    never.sleep(1e-5, [&] { return h.locked.load(std::memory_order_relaxed) == 0; });
  }
  struct Unlock {
    std::atomic<std::uint32_t>& locked;
    ~Unlock() { locked.store(0, std::memory_order_release); }
  } unlock{h.locked};

  const auto end = h.regions.begin() + h.region_count;
  auto found = std::find_if(h.regions.begin(), end, [&](const Header::Region& r) { return name == r.name; });
  if (found != end) {
    if (found->bytes != bytes)
      throw Mismatch(
          fmt::format("shared memory `{}` was asked for with {} bytes, and has {}", name, bytes, found->bytes));
  } else {
    if (h.region_count == h.regions.size()) fail("shared memory has no room for more than {} names", h.regions.size());
    const std::uint64_t offset = round_up(h.arena_end, bytes >= large_page ? large_page : page);
    if (offset > bytes_ || bytes > bytes_ - offset)
      fail("shared memory is full: `{}` needs {} bytes, {} of {} are taken", name, bytes, h.arena_end - h.arena,
           bytes_ - h.arena);
    std::copy(name.begin(), name.end(), found->name);
    found->offset = offset;
    found->bytes = bytes;
    h.arena_end = offset + bytes;
    ++h.region_count;
  }
  return {base_ + found->offset, bytes};
}

}  // namespace echelon
