#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace echelon {

namespace {
EVP_MD_CTX* as_context(void* p) { return static_cast<EVP_MD_CTX*>(p); }
}  // namespace

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(as_context(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { begin(); }

void Sha256::begin() {
  if (!context_ || EVP_DigestInit_ex(as_context(context_.get()), EVP_sha256(), nullptr) != 1)
    fail("OpenSSL offers no SHA-256 here");
}

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(as_context(context_.get()), bytes.data(), bytes.size()) != 1) fail("SHA-256 failed");
}

void Sha256::update_u64(std::uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (auto& b : bytes) b = static_cast<std::byte>(number), number >>= 8;
  update(bytes);
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(as_context(context_.get()), digest.data(), nullptr) != 1) fail("SHA-256 failed");
  begin();
  std::string text;
  for (const unsigned char b : digest) text += fmt::format("{:02x}", b);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace echelon
