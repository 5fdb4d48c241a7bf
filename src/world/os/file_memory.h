#pragma once
// Memory that lies in a file: the operating system keeps in RAM what is used often, and writes the rest to the disk.
// The file has no name (it is gone when the process ends, however it ends) and all its blocks from the start, so that a
// full disk is an error when it is made and not later. Zeroed. Movable; not thread-safe by itself.

#include <cstddef>
#include <span>
#include <string>

namespace echelon {

class FileMemory {
 public:
  FileMemory() = default;
  // In `folder`, which exists. DiskError if it cannot be written to or has no room.
  FileMemory(const std::string& folder, std::size_t bytes);
  FileMemory(FileMemory&& other) noexcept;
  FileMemory& operator=(FileMemory&& other) noexcept;
  ~FileMemory();

  std::size_t bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

  // Some of its bytes will be read soon: the system begins to fetch them from the disk, and nobody waits for it.
  static void will_need(std::span<const std::byte> bytes);
  // They will not be used for a while: the process holds no memory for whole pages of them any more. What they contain
  // is in the file, which the system writes to the disk in the background.
  static void let_go(std::span<const std::byte> bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace echelon
