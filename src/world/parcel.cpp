#include "world/parcel.h"

#include <algorithm>
#include <bit>

namespace echelon {

namespace {

constexpr std::size_t smallest_class = 8;

std::size_t class_of(std::size_t bytes) {
  if (bytes == 0) return 0;
  return std::max(smallest_class, static_cast<std::size_t>(std::bit_width(bytes - 1)));
}

}  // namespace

Parcel* ParcelPool::take_used(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Parcel* const parcel = idle_[class_of(bytes)].pop();
  if (parcel) parcel->bytes = bytes;
  return parcel;
}

Parcel& ParcelPool::take(std::size_t bytes) {
  if (Parcel* const used = take_used(bytes)) return *used;
  auto parcel = std::make_unique<Parcel>();
  parcel->bytes = bytes;
  parcel->size_class = class_of(bytes);
  if (bytes > 0) {
    const std::size_t room = std::size_t{1} << parcel->size_class;
    parcel->memory.reset(static_cast<std::byte*>(::operator new[](room, Parcel::alignment)));
  }
  const std::lock_guard lock(mutex_);
  return *all_.emplace_back(std::move(parcel));
}

void ParcelPool::give_back(Parcel& parcel) {
  const std::lock_guard lock(mutex_);
  idle_[parcel.size_class].push(parcel);
}

}  // namespace echelon
