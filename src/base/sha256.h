#pragma once
// SHA-256 of bytes that arrive in pieces (OpenSSL's, which uses the processor's own instructions where it has them).
// An object belongs to one thread; throws Failure only if OpenSSL cannot start.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace echelon {

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  void update_u64(std::uint64_t number);  // as eight little-endian bytes
  std::string hex();                      // 64 lower-case digits; ends this hash, the next update begins a new one

 private:
  struct Free {
    void operator()(void* context) const;
  };
  void begin();
  std::unique_ptr<void, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace echelon
