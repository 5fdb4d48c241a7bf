#include "track/event_file.h"

#include <cstring>

#include "base/crc32c.h"
#include "world/os/host.h"

namespace echelon {

namespace {

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Protobuf's wire format: a key (field number, kind of value), then the value.
class Message {
 public:
  Message& varint(int field, std::uint64_t value) {
    put(static_cast<std::uint64_t>(field) << 3 | 0);
    put(value);
    return *this;
  }
  Message& number(int field, double value) { return fixed(field, 1, little_endian(value)); }
  Message& number(int field, float value) { return fixed(field, 5, little_endian(value)); }
  Message& bytes(int field, std::string_view value) {
    put(static_cast<std::uint64_t>(field) << 3 | 2);
    put(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  Message& fixed(int field, unsigned kind, std::string_view value) {
    put(static_cast<std::uint64_t>(field) << 3 | kind);
    bytes_ += value;
    return *this;
  }
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

std::string checksum(std::string_view bytes) {
  return little_endian(masked_crc(crc32c(std::as_bytes(std::span(bytes)))));
}

std::string framed(const std::string& record) {
  const std::string length = little_endian(static_cast<std::uint64_t>(record.size()));
  return length + checksum(length) + record + checksum(record);
}

}  // namespace

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary. Summary: 1 value. Value: 1 tag, 2 simple_value.
std::string event_file_header(double unix_seconds) {
  return framed(Message().number(1, unix_seconds).bytes(3, "brain.Event:2").str());
}

std::string to_event(const MetricPoint& point) {
  Message summary;
  for (const auto& [name, value] : point.values)
    summary.bytes(1, Message().bytes(1, name).number(2, static_cast<float>(value)).str());
  return framed(
      Message().number(1, point.time).varint(2, static_cast<std::uint64_t>(point.step)).bytes(5, summary.str()).str());
}

MetricsWriter::Output event_output(Disk& disk, const std::string& directory, double unix_seconds,
                                   const std::vector<MetricPoint>& kept) {
  disk.make_directories(directory);
  const std::string name = fmt::format("events.out.tfevents.{:010}.{}.{}.0", static_cast<std::int64_t>(unix_seconds),
                                       host_name(), process_id());
  std::string bytes = event_file_header(unix_seconds);
  for (const auto& point : kept) bytes += to_event(point);
  write_file_atomically(disk, directory + "/" + name, bytes);
  for (const auto& other : disk.list(directory))
    if (other != name && other.starts_with("events.out.tfevents.")) disk.remove_all(directory + "/" + other);
  return {std::make_unique<AppendLog>(disk, directory + "/" + name), to_event};
}

}  // namespace echelon
