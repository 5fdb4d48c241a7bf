// Any 80 or 72 bytes are a Hello or a Challenge that is written back as it was read, or are refused.

#include <algorithm>
#include <cstdint>

#include "world/transport/tcp/handshake.h"

int fuzz_handshake(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  using namespace echelon::tcp;
  HelloBytes hello{};
  ChallengeBytes challenge{};
  std::copy_n(reinterpret_cast<const std::byte*>(data), std::min(size, hello.size()), hello.begin());
  std::copy_n(reinterpret_cast<const std::byte*>(data), std::min(size, challenge.size()), challenge.begin());
  try {
    invariant(encode(decode_hello(hello)) == hello, "a hello survives the way");
  } catch (const BadHandshake&) {
  }
  try {
    invariant(encode(decode_challenge(challenge)) == challenge, "a challenge survives the way");
  } catch (const BadHandshake&) {
  }
  return 0;
}
