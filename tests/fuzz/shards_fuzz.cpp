// Any bytes are either refused with BadInput or are an archive of samples, each of which can be read or is refused.

#include <cstdint>

#include "base/error.h"
#include "data/formats/shards.h"
#include "world/sim/memory_disk.h"

int fuzz_shards(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  MemoryDisk disk;
  disk.create("shard.tar")->append(std::as_bytes(std::span(data, size)));
  try {
    data::ShardOptions options;
    options.length = 5;
    const auto d = data::open_shards(disk, "shard.tar", "train", options);
    data::Sample sample(d->fields());
    for (std::uint64_t i = 0; i < d->size(); ++i) try {
        d->get(i, {}, sample.ref());
      } catch (const BadInput&) {
      }
  } catch (const BadInput&) {
  }
  return 0;
}
