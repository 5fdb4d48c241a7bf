#include "track/weights_hash.h"

#include <algorithm>
#include <vector>

#include "base/sha256.h"

namespace echelon {

namespace {

void hash_description(Sha256& hash, std::string_view name, std::string_view dtype, const Shape& shape) {
  hash.update_u64(name.size());
  hash.update(name);
  hash.update(dtype);
  hash.update_u64(static_cast<std::uint64_t>(shape.rank()));
  for (const auto d : shape.dims()) hash.update_u64(static_cast<std::uint64_t>(d));
}

}  // namespace

std::string weights_hash(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const auto& t : tensors) order.push_back(&t);
  std::ranges::sort(order, {}, [](const TensorView* t) { return std::string_view(t->name); });
  Sha256 hash;
  for (const TensorView* t : order) {
    hash_description(hash, t->name, name_of(t->dtype), t->shape);
    hash.update(t->bytes);
  }
  return hash.hex();
}

std::string weights_hash(SafetensorsFile& file) {
  Sha256 hash;
  std::vector<std::byte> buffer;
  for (const StoredTensor& t : file.tensors()) {
    hash_description(hash, t.name, t.type_name(), t.shape);
    buffer.resize(t.bytes);
    file.read(t, buffer);
    hash.update(buffer);
  }
  return hash.hex();
}

}  // namespace echelon
