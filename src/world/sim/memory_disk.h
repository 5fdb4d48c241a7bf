#pragma once
// A disk in memory with the faults of real ones: it can be full, and at a loss of power it forgets what was not synced:
// bytes of files after their last `sync`, names after the last `sync_directory` of their directory. Takes no time.
// Relative and absolute paths mean the same tree. Not thread-safe: it belongs to the simulation's thread.

#include <cstdint>
#include <map>
#include <memory>

#include "world/os/disk.h"
#include "world/sim/planted_bugs.h"

namespace echelon {

class MemoryDisk : public Disk {
 public:
  explicit MemoryDisk(std::uint64_t capacity = ~std::uint64_t{0}, const PlantedBugs& bugs = {});
  ~MemoryDisk() override;

  void set_full(bool full) { full_ = full; }          // nothing more can be written
  std::uint64_t refused() const { return refused_; }  // writes, because it was full
  void lose_power();
  std::uint64_t used() const;

  std::unique_ptr<File> open(const std::string& path) override;
  std::unique_ptr<File> create(const std::string& path) override;
  std::unique_ptr<File> append_to(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void make_directories(const std::string& path) override;
  void remove_all(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  bool exists(const std::string& path) override;
  bool is_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;

 private:
  struct Node;
  class OpenFile;
  using NodePtr = std::shared_ptr<Node>;
  NodePtr find(const std::string& path) const;  // null if absent
  NodePtr must_find(const char* call, const std::string& path) const;
  NodePtr parent_of(const char* call, const std::string& path, std::string& name) const;
  std::unique_ptr<File> open_for_writing(const char* call, const std::string& path, bool truncate);
  void append(Node& node, const std::string& path, std::span<const std::byte> bytes);

  std::uint64_t capacity_;
  PlantedBugs bugs_;
  NodePtr root_;
  bool full_ = false;
  std::uint64_t refused_ = 0;
};

}  // namespace echelon
