#include "data/formats/tar.h"

#include <charconv>
#include <utility>

#include "base/error.h"

namespace echelon::data {

namespace {

constexpr std::uint64_t block = 512, longest_name = 64 << 10;
constexpr std::uint64_t unsaid = ~0ull;

std::string_view field(const std::string& header, std::size_t at, std::size_t length) {
  const std::string_view f = std::string_view(header).substr(at, length);
  return f.substr(0, std::min(f.find('\0'), f.size()));
}

// A number in octal text, or in binary when the first bit is set.
std::uint64_t header_number(const Source& tar, std::uint64_t offset, const std::string& header, std::size_t at,
                            std::size_t length, std::string_view what) {
  std::uint64_t value = 0;
  if (static_cast<unsigned char>(header[at]) == 0x80) {
    for (std::size_t i = at + 1; i < at + length; ++i) {
      if (value >> 54) corrupt(tar, offset + at, what, "a number that is too large");
      value = value << 8 | static_cast<unsigned char>(header[i]);
    }
    return value;
  }
  std::string_view text = field(header, at, length);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    corrupt(tar, offset + at, what, fmt::format("'{:.12}'", text));
  return value;
}

std::uint64_t checksum(const std::string& header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<std::uint64_t>(static_cast<unsigned char>(header[i]));
  return sum;
}

// "27 path=a/long/name.png\n" and so on: what POSIX says about the next member.
void read_pax(const Source& tar, std::uint64_t offset, std::string_view text, std::string& path, std::uint64_t& size) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
        text[length - 1] != '\n')
      corrupt(tar, offset, "a record 'length key=value'", fmt::format("'{:.20}'", text));
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos)
      corrupt(tar, offset, "a record 'length key=value'", fmt::format("'{:.20}'", record));
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") path = value;
    if (key == "size") {
      std::uint64_t n = 0;
      const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), n);
      if (wrong != std::errc{} || stop != value.data() + value.size())
        corrupt(tar, offset, "a size", fmt::format("'{:.20}'", value));
      size = n;
    }
    text.remove_prefix(length);
  }
}

}  // namespace

void read_tar(const Source& tar, const std::function<void(const TarMember&)>& use) {
  std::string long_name;
  std::uint64_t long_size = unsaid;
  for (std::uint64_t at = 0;;) {
    const std::string header = Reader(tar, at).text(block, "a header, or the empty block that ends an archive");
    if (header.find_first_not_of('\0') == std::string::npos) return;
    if (const auto sum = header_number(tar, at, header, 148, 8, "a checksum"); sum != checksum(header))
      corrupt(tar, at, fmt::format("a tar header with checksum {}", sum),
              fmt::format("{} (not a tar file, or corrupt)", checksum(header)));
    const char type = header[156];
    const bool regular = type == '0' || type == '\0';
    std::uint64_t size = header_number(tar, at, header, 124, 12, "a size");
    if (regular && long_size != unsaid) size = long_size;
    const std::uint64_t content = at + block;
    if (size > tar.size() - content)
      corrupt(tar, at + 124, fmt::format("a size of at most {}", tar.size() - content),
              fmt::format("{} (truncated?)", size));
    if (type == 'L' || type == 'x') {
      if (size > longest_name) corrupt(tar, at + 124, "a name of at most 64 KiB", fmt::format("{} bytes", size));
      const std::string text = Reader(tar, content).text(size, "a long name");
      if (type == 'L')
        long_name = text.c_str();
      else
        read_pax(tar, content, text, long_name, long_size);
    } else {
      std::string name = std::exchange(long_name, {});
      if (name.empty()) {
        const auto prefix = header.compare(257, 5, "ustar") == 0 ? field(header, 345, 155) : std::string_view{};
        name =
            prefix.empty() ? std::string(field(header, 0, 100)) : fmt::format("{}/{}", prefix, field(header, 0, 100));
      }
      if (regular) use({std::move(name), content, size});
      long_size = unsaid;
    }
    at = content + (size + block - 1) / block * block;
  }
}

std::string tar_header(const std::string& name, std::uint64_t size) {
  if (name.empty() || name.size() > 100) bad_input("'{}': a name in a tar archive has 1 to 100 bytes", name);
  std::string header(block, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  header[156] = '0';
  put(257, std::string_view("ustar\00000", 8));
  put(148, fmt::format("{:06o}", checksum(header)));
  header[154] = '\0', header[155] = ' ';
  return header;
}

}  // namespace echelon::data
