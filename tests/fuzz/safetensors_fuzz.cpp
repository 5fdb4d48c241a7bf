// Any bytes are either refused with BadInput or are tensors that survive being written and read again.

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "tests/support/memory_file.h"
#include "track/safetensors.h"
#include "track/weights_hash.h"

namespace {

using namespace echelon;

// A disk that has one file, in memory: what was written last.
class OneFile : public Disk {
 public:
  struct Shared : File {
    explicit Shared(test::MemoryFile& f) : file(f) {}
    std::uint64_t size() override { return file.size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override { return file.read_at(offset, into); }
    void append(std::span<const std::byte> bytes) override { file.append(bytes); }
    void sync() override {}
    test::MemoryFile& file;
  };
  std::unique_ptr<File> open(const std::string&) override { return std::make_unique<Shared>(file_); }
  std::unique_ptr<File> create(const std::string&) override { return std::make_unique<Shared>(file_); }
  std::unique_ptr<File> append_to(const std::string&) override { return std::make_unique<Shared>(file_); }
  void rename(const std::string&, const std::string&) override {}
  void make_directories(const std::string&) override {}
  void remove_all(const std::string&) override {}
  void sync_directory(const std::string&) override {}
  bool exists(const std::string&) override { return true; }
  bool is_directory(const std::string&) override { return false; }
  std::vector<std::string> list(const std::string&) override { return {}; }

 private:
  test::MemoryFile file_{std::string_view()};
};

}  // namespace

int fuzz_safetensors(const std::uint8_t* data, std::size_t size) {
  try {
    SafetensorsFile file(std::make_unique<test::MemoryFile>(std::as_bytes(std::span(data, size))), "input");
    std::vector<Tensor> tensors;
    for (const auto& t : file.tensors()) tensors.push_back(file.read(t.name));
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      views.push_back({file.tensors()[i].name, tensors[i].dtype(), tensors[i].shape(), tensors[i].bytes()});
    OneFile disk;
    write_safetensors(disk, "again", views, file.metadata());
    SafetensorsFile again(disk, "again");
    invariant(weights_hash(again) == weights_hash(file), "tensors change when written and read again");
    invariant(again.metadata() == file.metadata(), "metadata changes when written and read again");
  } catch (const BadInput&) {
  }
  return 0;
}
