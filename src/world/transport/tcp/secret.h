#pragma once
// The secret that the processes of one job share: 256 random bits. A process that has it may join the job; it is never
// sent. It is kept in a file that only its owner can read, or in the environment variable ECHELON_SECRET, as 64
// hexadecimal digits; never on a command line, which every user of the machine can read. Zeros and other patterns are
// refused.
//
// All functions are thread-safe. Errors that the user can cure are BadInput; no message ever contains the secret.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace echelon::tcp {

using Bytes32 = std::array<std::byte, 32>;

struct Secret {
  Bytes32 bytes;
};

Secret make_secret();
Bytes32 make_nonce();  // never the same twice

Secret read_secret_file(const std::string& path);                       // refuses a file that others may read
void write_secret_file(const std::string& path, const Secret& secret);  // mode 0600; refuses to replace a file
Secret parse_secret(std::string_view hex, std::string_view where_from);
std::string to_hex(const Secret& secret);

// HMAC-SHA256 over the parts, each preceded by its length, so that no two lists of parts look alike.
Bytes32 hmac(const Secret& secret, std::initializer_list<std::span<const std::byte>> parts);
// Takes the same time wherever the two differ.
bool same(const Bytes32& a, const Bytes32& b);
// Another secret, for one purpose, from which the first cannot be computed.
Secret derive(const Secret& secret, std::string_view purpose, std::span<const std::byte> context);

Bytes32 sha256(std::string_view text);

}  // namespace echelon::tcp
