#pragma once
// A disk that fails at a chosen call: every call of the disk and of its files is counted, and the chosen one fails as a
// full disk, a broken medium, a torn write or the end of the process would make it fail.

#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory>

#include "world/os/disk.h"

namespace echelon::test {

enum class Fault {
  full,    // this call: ENOSPC, nothing written
  broken,  // this call: EIO, nothing written
  torn,    // this call: ENOSPC, and half of the bytes were written
  dead,    // this call and all after it: nothing happens any more, as if the process had been killed here
};

class FaultyDisk : public Disk {
 public:
  explicit FaultyDisk(Disk& real) : real_(real) {}

  void fail_at(std::size_t call, Fault fault) { calls_ = 0, chosen_ = call, fault_ = fault; }
  void work() { fail_at(std::numeric_limits<std::size_t>::max(), Fault::full); }
  std::size_t calls() const { return calls_; }  // since fail_at or work

  std::unique_ptr<File> open(const std::string& p) override {
    return file("open", p, [&] { return real_.open(p); });
  }
  std::unique_ptr<File> create(const std::string& p) override {
    return file("open", p, [&] { return real_.create(p); });
  }
  std::unique_ptr<File> append_to(const std::string& p) override {
    return file("open", p, [&] { return real_.append_to(p); });
  }
  void rename(const std::string& from, const std::string& to) override { step("rename", from), real_.rename(from, to); }
  void make_directories(const std::string& p) override { step("mkdir", p), real_.make_directories(p); }
  void remove_all(const std::string& p) override { step("remove", p), real_.remove_all(p); }
  void sync_directory(const std::string& p) override { step("sync", p), real_.sync_directory(p); }
  bool exists(const std::string& p) override { return step("stat", p), real_.exists(p); }
  bool is_directory(const std::string& p) override { return step("stat", p), real_.is_directory(p); }
  std::vector<std::string> list(const std::string& p) override { return step("list", p), real_.list(p); }

 private:
  class FaultyFile : public File {
   public:
    FaultyFile(FaultyDisk& disk, std::string path, std::unique_ptr<File> real)
        : disk_(disk), path_(std::move(path)), real_(std::move(real)) {}
    std::uint64_t size() override { return disk_.step("stat", path_), real_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
      return disk_.step("read", path_), real_->read_at(offset, into);
    }
    void append(std::span<const std::byte> bytes) override {
      if (disk_.calls_ == disk_.chosen_ && disk_.fault_ == Fault::torn) real_->append(bytes.first(bytes.size() / 2));
      disk_.step("write", path_);
      real_->append(bytes);
    }
    void sync() override { disk_.step("sync", path_), real_->sync(); }

   private:
    FaultyDisk& disk_;
    std::string path_;
    std::unique_ptr<File> real_;
  };

  template <typename Open>
  std::unique_ptr<File> file(const char* call, const std::string& path, Open&& open) {
    step(call, path);
    return std::make_unique<FaultyFile>(*this, path, open());
  }

  void step(const char* call, const std::string& path) {
    const std::size_t n = calls_++;
    if (n == chosen_ || (n > chosen_ && fault_ == Fault::dead))
      throw DiskError(call, path, fault_ == Fault::broken || fault_ == Fault::dead ? EIO : ENOSPC);
  }

  Disk& real_;
  std::size_t calls_ = 0, chosen_ = std::numeric_limits<std::size_t>::max();
  Fault fault_ = Fault::full;
};

}  // namespace echelon::test
