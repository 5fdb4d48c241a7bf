#pragma once
// A hash that tells data sets apart: SHA-256 over pieces whose borders count. One thread at a time.

#include "base/sha256.h"

namespace echelon::data {

class Fingerprint {
 public:
  Fingerprint& add(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    return *this;
  }
  Fingerprint& add(std::string_view text) {  // with its length, so that "a" "bc" is not "ab" "c"
    hash_.update_u64(text.size());
    hash_.update(text);
    return *this;
  }
  Fingerprint& add(std::uint64_t number) {
    hash_.update_u64(number);
    return *this;
  }
  std::string hex() { return hash_.hex(); }  // 64 digits; call last

 private:
  Sha256 hash_;
};

}  // namespace echelon::data
