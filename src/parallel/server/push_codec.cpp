// Pushes in a codec's bytes (codec/codec.h).

#include "parallel/server/push_stage.h"

namespace echelon::exchanges {

namespace {

class CodecStage : public PushStage {
 public:
  explicit CodecStage(const PushParts& parts) : parts_(parts.parts), codecs_(parts.codecs) {
    std::size_t most = 0;
    for (const auto& codec : codecs_) most = std::max(most, codec->most_bytes());
    bytes_ = Buffer(most);
  }
  void process(Push& push) override {
    const CodecStep step{
        .number = push.number, .epoch = push.info.epoch, .random = parts_.random("codec", push.info.clock, push.key)};
    const std::span<std::byte> out = bytes_.as<std::byte>();
    push.bytes = out.first(codecs_[push.key]->encode(push.numbers, step, out));
  }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (std::size_t k = 0; k < codecs_.size(); ++k) add_states(all, fmt::format("codec {} ", k), codecs_[k]->state());
    return all;
  }

 private:
  const ExchangeParts& parts_;
  KeyCodecs& codecs_;
  Buffer bytes_;
};

class CodecDecoder : public PushDecoder {
 public:
  explicit CodecDecoder(const DecoderParts& parts)
      : codec_(parts.parts.codec(parts.parts.pieces(parts.range))), numbers_(parts.numbers()) {}
  std::span<const float> read(const Message& message) override {
    codec_->decode(message.payload(), numbers_);
    return numbers_;
  }
  void add(const Message& message, std::span<float> sum) override { codec_->add(message.payload(), 1, sum); }

 private:
  std::unique_ptr<Codec> codec_;
  std::span<float> numbers_;
};

}  // namespace

KeyCodecs make_key_codecs(const ExchangeParts& parts, std::span<const Key> keys) {
  KeyCodecs codecs;
  if (parts.codec)
    for (const Key& key : keys) codecs.push_back(parts.codec(parts.pieces(key.range)));
  return codecs;
}

std::unique_ptr<PushStage> codec_stage(const PushParts& parts) { return std::make_unique<CodecStage>(parts); }
std::unique_ptr<PushDecoder> codec_decoder(const DecoderParts& parts) { return std::make_unique<CodecDecoder>(parts); }

}  // namespace echelon::exchanges
