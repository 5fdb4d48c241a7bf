// Any text as labels.json or summary.json of a run is either refused with BadInput or can be asked, and labels survive
// being written and read again. The first byte chooses the file.

#include <cstdint>

#include "base/error.h"
#include "registry/labels.h"
#include "world/sim/memory_disk.h"

int fuzz_run_folder(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size == 0) return 0;
  MemoryDisk disk;
  const RunFolder folder{"run"};
  disk.make_directories(folder.path);
  const bool labels = data[0] % 2 == 0;
  disk.create(labels ? labels_path(folder) : folder.summary())->append(std::as_bytes(std::span(data, size).subspan(1)));
  try {
    if (labels) {
      const Labels read = read_labels(disk, folder);
      write_labels(disk, folder, read);
      read_labels(disk, folder);
    } else {
      const Json summary = read_summary(disk, folder);
      summary.value("steps", std::int64_t{0});
      summary.value("stopped_by", std::string());
      summary.value("weights_sha256", std::string());
    }
  } catch (const BadInput&) {
  }
  return 0;
}
