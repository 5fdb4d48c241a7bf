#include "world/sim/disk_with_room_of.h"

namespace echelon {

namespace {

constexpr const char* probe = "is there room";

// Throws DiskError if the simulated disk takes no byte.
void ask_for_room(Disk& simulated) {
  constexpr std::byte one{1};
  simulated.create(probe)->append({&one, 1});
}

class FileWithRoomOf : public File {
 public:
  FileWithRoomOf(Disk& simulated, std::unique_ptr<File> real) : simulated_(simulated), real_(std::move(real)) {}
  std::uint64_t size() override { return real_->size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override { return real_->read_at(offset, into); }
  void append(std::span<const std::byte> bytes) override {
    ask_for_room(simulated_);
    real_->append(bytes);
  }
  void sync() override { real_->sync(); }

 private:
  Disk& simulated_;
  std::unique_ptr<File> real_;
};

class DiskWithRoomOf : public Disk {
 public:
  DiskWithRoomOf(Disk& simulated, Disk& real) : simulated_(simulated), real_(real) {}
  std::unique_ptr<File> open(const std::string& path) override { return real_.open(path); }
  std::unique_ptr<File> create(const std::string& path) override { return growing(real_.create(path)); }
  std::unique_ptr<File> append_to(const std::string& path) override { return growing(real_.append_to(path)); }
  void rename(const std::string& from, const std::string& to) override { real_.rename(from, to); }
  void make_directories(const std::string& path) override { real_.make_directories(path); }
  void remove_all(const std::string& path) override { real_.remove_all(path); }
  void sync_directory(const std::string& path) override { real_.sync_directory(path); }
  bool exists(const std::string& path) override { return real_.exists(path); }
  bool is_directory(const std::string& path) override { return real_.is_directory(path); }
  std::vector<std::string> list(const std::string& path) override { return real_.list(path); }
  std::optional<FileStamp> stamp(const std::string& path) override { return real_.stamp(path); }

 private:
  std::unique_ptr<File> growing(std::unique_ptr<File> file) {
    return std::make_unique<FileWithRoomOf>(simulated_, std::move(file));
  }
  Disk& simulated_;
  Disk& real_;
};

}  // namespace

std::unique_ptr<Disk> make_disk_with_room_of(Disk& simulated, Disk& real) {
  return std::make_unique<DiskWithRoomOf>(simulated, real);
}

}  // namespace echelon
