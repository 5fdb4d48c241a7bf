#pragma once
// The disk as the rest of the program sees it: a handful of calls, each of which can fail and says what and where.
// Code above world/ never opens a file by itself, so a test can give the program a disk that fills up, tears writes or
// flips bits (a decorator of the same type), and the simulated world can have disks of its own.
//
// Errors: every call throws DiskError naming the call, the path and the reason. Thread-safe as far as the operating
// system is: several threads may `read_at` the same `File` at once; one at a time may write to it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace echelon {

class DiskError : public Failure {
 public:
  DiskError(std::string_view call, std::string_view path, int error_number);
  int error_number() const { return error_number_; }  // as in errno: ENOSPC, ENOENT, ...

 private:
  int error_number_;
};

class File {
 public:
  virtual ~File() = default;  // closes
  virtual std::uint64_t size() = 0;
  // Fills as much of `into` as the file has from `offset` on; returns the count (short only at the end of the file).
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
  virtual void append(std::span<const std::byte> bytes) = 0;  // writes all of it or throws
  virtual void sync() = 0;                                    // returns when the bytes are on the medium
};

// What tells a file from one that has been changed or replaced since. A user cannot set `changed_ns`.
struct FileStamp {
  std::uint64_t size = 0, device = 0, inode = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // since 1970
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual std::unique_ptr<File> open(const std::string& path) = 0;          // for reading; throws if absent
  virtual std::unique_ptr<File> create(const std::string& path) = 0;        // for writing; truncates
  virtual std::unique_ptr<File> append_to(const std::string& path) = 0;     // for writing at the end; creates
  virtual void rename(const std::string& from, const std::string& to) = 0;  // atomic; replaces a file
  virtual void make_directories(const std::string& path) = 0;
  virtual void remove_all(const std::string& path) = 0;      // no error if absent
  virtual void sync_directory(const std::string& path) = 0;  // makes a rename durable
  virtual bool exists(const std::string& path) = 0;
  virtual bool is_directory(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& path) = 0;  // names, sorted; not "." and ".."
  virtual std::optional<FileStamp> stamp(const std::string&) { return std::nullopt; }  // none: nobody knows
};

// The operating system's disk.
std::unique_ptr<Disk> make_real_disk();

// Writes `bytes` beside `path`, syncs, renames over it and syncs the directory: afterwards the file is either what it
// was before or all of `bytes`, whatever happens in between.
void write_file_atomically(Disk& disk, const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(Disk& disk, const std::string& path, std::string_view text);

// The whole file; a BadInput naming the path and both sizes if it is larger than `limit`.
std::vector<std::byte> read_file(Disk& disk, const std::string& path, std::uint64_t limit);
std::string read_text(Disk& disk, const std::string& path, std::uint64_t limit = 16u << 20);

}  // namespace echelon
