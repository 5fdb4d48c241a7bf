// What a checkpoint costs the training and what it costs the disk, as ratios: the stall of `save` against one memcpy of
// the same bytes, and the writing in the background against hashing twice and writing the same bytes.
//
//     bench_checkpoint [MiB] [DIRECTORY]

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/sha256.h"
#include "tensor/tensor.h"
#include "track/checkpointer.h"

namespace {

using namespace echelon;

double best_of(int times, Clock& clock, const std::function<void()>& act) {
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    const double start = clock.seconds();
    act();
    best = std::min(best, clock.seconds() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t mib = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 256;
  const std::string directory = std::string(argc > 2 ? argv[2] : "/tmp") + "/echelon_bench_checkpoint";
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  Tensor weights(DType::f32, {static_cast<std::int64_t>(mib << 20) / 4});
  std::ranges::fill(weights.as<float>(), 0.5f);
  const std::vector<TensorView> views{{"w", DType::f32, weights.shape(), weights.bytes()}};

  Tensor other(DType::f32, weights.shape());
  const auto copy = [&] { std::memcpy(other.bytes().data(), weights.bytes().data(), weights.bytes().size()); };
  const auto hash = [&] { (void)sha256_hex(weights.bytes()); };
  const auto write = [&] {
    const auto file = disk->create(directory + ".plain");
    file->append(weights.bytes());
    file->sync();
  };

  Checkpointer saver(*disk, *clock, make_background("checkpoint", 1), directory, {.keep_last = 1, .keep_best = false});
  Moment moment;
  double stall = 1e9, background = 1e9;
  for (int i = 0; i < 4; ++i) {  // the first one allocates
    moment.step = i + 1;
    const double start = clock->seconds();
    saver.save(moment, views, {}, Checkpointer::IfBusy::wait);
    if (i > 0) stall = std::min(stall, clock->seconds() - start);
    for (const auto& result : saver.finish()) {
      if (!result.saved) return std::fprintf(stderr, "%s\n", result.warning.c_str()), 1;
      background = std::min(background, result.seconds);
    }
  }
  const double one_copy = best_of(3, *clock, copy), one_hash = best_of(3, *clock, hash),
               one_write = best_of(3, *clock, write);
  const double verify = best_of(3, *clock, [&] { latest_valid(*disk, directory).found.value(); });
  std::printf("%zu MiB: memcpy %.1f ms, save() stalls %.1f ms = %.2f copies\n", mib, one_copy * 1e3, stall * 1e3,
              stall / one_copy);
  std::printf(
      "in the background %.0f ms; SHA-256 %.0f ms, plain write and sync %.0f ms: %.2f of two hashes and a write\n",
      background * 1e3, one_hash * 1e3, one_write * 1e3, background / (2 * one_hash + one_write));
  std::printf("verified and opened in %.0f ms = %.2f hashes\n", verify * 1e3, verify / one_hash);
  std::filesystem::remove_all(directory);
  std::filesystem::remove(directory + ".plain");
}
