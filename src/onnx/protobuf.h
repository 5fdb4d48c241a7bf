#pragma once
// The wire format of protocol buffers, as much of it as ONNX files use: fields that are a number (varint), four or
// eight bytes, or a length and bytes. A reader trusts nothing: every length is checked against what is left before it
// is used, and what cannot be is a BadInput with its offset. It owns no memory; spans point into the bytes it was
// given.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace echelon::onnx {

class ProtoWriter {
 public:
  void number(int field, std::uint64_t value);
  void real(int field, float value);
  void bytes(int field, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);
  std::string text_;
};

struct ProtoField {
  enum class Wire { number = 0, eight = 1, bytes = 2, four = 5 };
  int field = 0;
  Wire wire = Wire::number;
  std::uint64_t number = 0;          // of all but `bytes`: its bits
  std::span<const std::byte> bytes;  // of `bytes`
  std::size_t offset = 0;            // where it stands in the file

  std::int64_t integer() const;   // BadInput if it is not a varint
  float real() const;             // BadInput if it is not four bytes
  std::string_view text() const;  // BadInput if it is not bytes
};

class ProtoReader {
 public:
  // `offset` is where `bytes` begin in the file, for messages.
  explicit ProtoReader(std::span<const std::byte> bytes, std::size_t offset = 0) : bytes_(bytes), base_(offset) {}
  ProtoReader(const ProtoField& message);  // NOLINT: a field that is a message; BadInput if it is not bytes
  bool next(ProtoField& field);            // false at the end

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t size);
  std::span<const std::byte> bytes_;
  std::size_t base_, at_ = 0;
};

}  // namespace echelon::onnx
