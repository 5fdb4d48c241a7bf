// Any bytes are either refused with Failure or decode to as many numbers as the run has; the sanitizers watch that
// nothing beyond them is touched. The first byte chooses the codec, the second the run.

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "tests/codec/cases.h"

int fuzz_codec(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::vector<std::string>& cases = test::codec_cases();
  if (size < 2) return 0;
  const std::vector<CodecPiece> pieces = data[1] % 4 == 3   ? test::odd_pieces()
                                         : data[1] % 4 == 2 ? std::vector<CodecPiece>{{.size = data[1] / 4u}}
                                                            : test::few_pieces();
  const std::unique_ptr<Codec> codec = test::codec_maker(cases[data[0] % cases.size()])(pieces);
  const auto bytes = std::make_unique<std::byte[]>(size - 2);  // of exactly this size, so that one more is noticed
  std::copy_n(reinterpret_cast<const std::byte*>(data + 2), size - 2, bytes.get());
  const std::span<const std::byte> all(bytes.get(), size - 2);
  std::vector<float> out(test::total(pieces));
  for (const auto& read : {std::function<void()>([&] { codec->decode(all, out); }),
                           std::function<void()>([&] { codec->add(all, -1, out); }),
                           std::function<void()>([&] { codec->clear_sent(all, out); })})
    try {
      read();
    } catch (const Failure&) {
    }
  return 0;
}
