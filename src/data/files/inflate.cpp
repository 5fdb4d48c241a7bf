#include "data/files/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace echelon::data {

namespace {

// Deflate cannot do better than 1032 : 1, so a declared size beyond that is a lie.
constexpr std::uint64_t best_ratio = 1032;
constexpr std::size_t piece = 256 << 10;

class Inflater {
 public:
  explicit Inflater(int window_bits) {
    if (::inflateInit2(&z_, window_bits) != Z_OK) fail("zlib cannot start");
  }
  ~Inflater() { ::inflateEnd(&z_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream* operator->() { return &z_; }
  int run() { return ::inflate(&z_, Z_NO_FLUSH); }
  void reset() { ::inflateReset(&z_); }

 private:
  z_stream z_{};
};

// How much may come out, and what the header of it says about that, which is asked once there is enough to read it.
struct Bound {
  std::uint64_t limit;
  const DeclaredSize& declared;
  std::string_view why = {};
  bool asked = false;

  void ask(const Source& source, std::span<const std::byte> beginning) {
    if (asked || !declared) return;
    asked = true;
    const std::uint64_t size = declared(*memory_source(source.name(), {beginning.begin(), beginning.end()}));
    if (size < limit) limit = size, why = ", as the header declares";
  }
};
constexpr std::size_t header_room = 68 << 10;  // the longest header there is (NPY's), and more

// Feeds [offset, end) of the source into the inflater, piece by piece, and its output to `bytes` up to the limit.
// Returns the offset just after the end of the deflate stream.
std::uint64_t unpack(Inflater& z, const Source& source, std::uint64_t offset, std::uint64_t end,
                     std::vector<std::byte>& bytes, Bound& bound) {
  std::vector<std::byte> input(std::min<std::uint64_t>(piece, end - offset));
  std::size_t done = bytes.size();
  for (;;) {
    if (z->avail_in == 0 && offset < end) {
      const std::size_t n = std::min<std::uint64_t>(input.size(), end - offset);
      source.read(offset, std::span(input).first(n));
      z->next_in = reinterpret_cast<Bytef*>(input.data());
      z->avail_in = static_cast<uInt>(n);
      offset += n;
    }
    // One byte more than the limit, so that exceeding it is seen. Before the header is read, no more than it needs.
    if (done == bytes.size()) {
      const std::uint64_t more = std::max<std::uint64_t>({piece, bytes.capacity(), 2 * done});
      bytes.resize(std::min<std::uint64_t>(bound.limit + 1, bound.declared && !bound.asked ? header_room : more));
    }
    const std::size_t room = std::min<std::size_t>(bytes.size() - done, 1u << 30);
    z->next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
    z->avail_out = static_cast<uInt>(room);
    const int result = z.run();
    done += room - z->avail_out;
    const std::uint64_t here = offset - z->avail_in;
    if (done >= header_room) bound.ask(source, std::span(bytes).first(header_room));
    if (done > bound.limit)
      corrupt(source, here, fmt::format("at most {} unpacked bytes{}", bound.limit, bound.why), "more");
    if (result == Z_STREAM_END) {
      bytes.resize(done);
      return here;
    }
    if (result == Z_BUF_ERROR && z->avail_in == 0 && offset == end)
      corrupt(source, here, "more compressed data", "the end (truncated?)");
    if (result != Z_OK && result != Z_BUF_ERROR)
      corrupt(source, here, "deflated data", z->msg ? z->msg : "something else");
  }
}

}  // namespace

std::vector<std::byte> gunzip(const Source& source, std::uint64_t limit, const DeclaredSize& declared) {
  std::vector<std::byte> bytes;
  limit = std::min(limit, source.size() > (1ull << 50) ? limit : source.size() * best_ratio);
  // The last four bytes say how much the last member unpacks to (modulo 2^32): a hint for the first allocation, and
  // believed only up to some 64 MiB; beyond that memory is taken as data arrive.
  constexpr std::uint64_t believed = 64 << 20;
  Bound bound{limit, declared};
  if (source.size() >= 18)
    bytes.reserve(std::min({limit, believed, Reader(source, source.size() - 4).little(4, "a size")}) + 1);
  Inflater z(15 + 16);  // 16: with gzip header and checksum
  for (std::uint64_t offset = 0; offset < source.size();) {
    offset = unpack(z, source, offset, source.size(), bytes, bound);
    z.reset();
    z->avail_in = 0;
  }
  if (source.size() == 0) corrupt(source, 0, "a gzip header", "an empty file");
  return bytes;
}

std::vector<std::byte> inflate_raw(const Source& source, std::uint64_t offset, std::uint64_t packed,
                                   std::uint64_t unpacked, const DeclaredSize& declared) {
  if (packed > source.size() || offset > source.size() - packed || unpacked / best_ratio > packed)
    corrupt(source, offset, "compressed data within the file", fmt::format("{} bytes for {}", packed, unpacked));
  std::vector<std::byte> bytes;
  bytes.reserve(std::min<std::uint64_t>(unpacked + 1, declared ? header_room : packed * best_ratio + 1));
  Inflater z(-15);
  Bound bound{unpacked, declared};
  const std::uint64_t end = unpack(z, source, offset, offset + packed, bytes, bound);
  if (end != offset + packed) corrupt(source, end, "the end of the compressed data", "more bytes");
  if (bytes.size() != unpacked)
    corrupt(source, end, fmt::format("{} unpacked bytes", unpacked), fmt::format("{}", bytes.size()));
  return bytes;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = ::crc32_z(0, nullptr, 0);
  return static_cast<std::uint32_t>(::crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace echelon::data
