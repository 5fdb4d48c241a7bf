#include "onnx/protobuf.h"

#include <bit>

#include "base/error.h"

namespace echelon::onnx {

void ProtoWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(0x80 | (value & 0x7f)));
  text_.push_back(static_cast<char>(value));
}

void ProtoWriter::number(int field, std::uint64_t value) {
  varint(static_cast<std::uint64_t>(field) << 3);
  varint(value);
}

void ProtoWriter::real(int field, float value) {
  varint(static_cast<std::uint64_t>(field) << 3 | 5);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) text_.push_back(static_cast<char>(bits >> shift & 0xff));
}

void ProtoWriter::bytes(int field, std::string_view value) {
  varint(static_cast<std::uint64_t>(field) << 3 | 2);
  varint(value.size());
  text_.append(value);
}

std::int64_t ProtoField::integer() const {
  if (wire != Wire::number) bad_input("offset {}: field {} is not a whole number", offset, field);
  return static_cast<std::int64_t>(number);
}

float ProtoField::real() const {
  if (wire != Wire::four) bad_input("offset {}: field {} is not a 32-bit number", offset, field);
  return std::bit_cast<float>(static_cast<std::uint32_t>(number));
}

std::string_view ProtoField::text() const {
  if (wire != Wire::bytes) bad_input("offset {}: field {} is not a text", offset, field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ProtoReader::ProtoReader(const ProtoField& message) : bytes_(message.bytes), base_(message.offset) {
  if (message.wire != ProtoField::Wire::bytes)
    bad_input("offset {}: field {} is not a message", message.offset, message.field);
}

std::uint64_t ProtoReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size()) bad_input("offset {}: the file ends inside of a number", base_ + at_);
    const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  bad_input("offset {}: a number of more than ten bytes", base_ + at_);
}

std::uint64_t ProtoReader::fixed(std::size_t size) {
  if (bytes_.size() - at_ < size) bad_input("offset {}: the file ends inside of a number", base_ + at_);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes_[at_++]) << (8 * i);
  return value;
}

bool ProtoReader::next(ProtoField& field) {
  if (at_ >= bytes_.size()) return false;
  field.offset = base_ + at_;
  const std::uint64_t key = varint(), wire = key & 7;
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) bad_input("offset {}: not a field of a message", field.offset);
  field.field = static_cast<int>(key >> 3);
  field.bytes = {};
  field.number = 0;
  field.wire = static_cast<ProtoField::Wire>(wire);
  switch (wire) {
    case 0: field.number = varint(); return true;
    case 1: field.number = fixed(8); return true;
    case 5: field.number = fixed(4); return true;
    case 2: {
      const std::uint64_t length = varint();
      if (length > bytes_.size() - at_)
        bad_input("offset {}: field {} has {} bytes, but {} are left", field.offset, field.field, length,
                  bytes_.size() - at_);
      field.offset = base_ + at_;
      field.bytes = bytes_.subspan(at_, length);
      at_ += length;
      return true;
    }
    default: bad_input("offset {}: a field of the unknown kind {}", field.offset, wire);
  }
}

}  // namespace echelon::onnx
