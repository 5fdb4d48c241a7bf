#pragma once
// A disk whose power can fail: what was not synced is then lost, in the worst order that the operating system allows.
// Bytes of files that were not synced are gone; new names and renames in a directory that was not synced are undone;
// removals have happened.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "world/os/disk.h"

namespace echelon::test {

class PowerLossDisk : public Disk {
 public:
  explicit PowerLossDisk(Disk& real) : real_(real) {}

  void lose_power() {
    namespace fs = std::filesystem;
    for (const auto& [path, bytes] : synced_)
      if (fs::exists(path) && fs::file_size(path) > bytes) fs::resize_file(path, bytes);
    while (!journal_.empty()) {
      const Entry last = journal_.back();
      journal_.pop_back();
      if (last.from.empty()) {
        fs::remove_all(last.to);
      } else if (fs::exists(last.to)) {
        fs::rename(last.to, last.from);
        move_paths(last.to, last.from);
      }
    }
    synced_.clear();
  }

  std::unique_ptr<File> open(const std::string& p) override { return real_.open(p); }
  std::unique_ptr<File> create(const std::string& p) override {
    if (!real_.exists(p)) journal_.push_back({"", p});
    synced_[p] = 0;
    return std::make_unique<TrackedFile>(*this, p, real_.create(p));
  }
  std::unique_ptr<File> append_to(const std::string& p) override {
    const bool is_new = !real_.exists(p);
    auto file = real_.append_to(p);
    if (is_new) journal_.push_back({"", p});
    if (!synced_.contains(p)) synced_[p] = file->size();
    return std::make_unique<TrackedFile>(*this, p, std::move(file));
  }
  void rename(const std::string& from, const std::string& to) override {
    real_.rename(from, to);
    move_paths(from, to);
    journal_.push_back({from, to});
  }
  void make_directories(const std::string& p) override {
    const auto parent = std::filesystem::path(p).parent_path().string();
    if (!parent.empty() && !real_.exists(parent)) make_directories(parent);
    if (!real_.exists(p)) journal_.push_back({"", p});
    real_.make_directories(p);
  }
  void remove_all(const std::string& p) override {
    real_.remove_all(p);
    std::erase_if(journal_, [&](const Entry& e) { return within(e.to, p); });
    std::erase_if(synced_, [&](const auto& e) { return within(e.first, p); });
  }
  void sync_directory(const std::string& p) override {
    real_.sync_directory(p);
    std::erase_if(journal_, [&](const Entry& e) { return std::filesystem::path(e.to).parent_path() == p; });
  }
  bool exists(const std::string& p) override { return real_.exists(p); }
  bool is_directory(const std::string& p) override { return real_.is_directory(p); }
  std::vector<std::string> list(const std::string& p) override { return real_.list(p); }

 private:
  struct Entry {
    std::string from, to;  // a new name has no `from`
  };

  class TrackedFile : public File {
   public:
    TrackedFile(PowerLossDisk& disk, std::string path, std::unique_ptr<File> real)
        : disk_(disk), path_(std::move(path)), real_(std::move(real)) {}
    std::uint64_t size() override { return real_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
      return real_->read_at(offset, into);
    }
    void append(std::span<const std::byte> bytes) override { real_->append(bytes); }
    void sync() override {
      real_->sync();
      disk_.synced_[path_] = real_->size();
    }

   private:
    PowerLossDisk& disk_;
    std::string path_;
    std::unique_ptr<File> real_;
  };

  static bool within(const std::string& path, const std::string& top) {
    return path == top || path.starts_with(top + "/");
  }
  static std::string moved(const std::string& path, const std::string& from, const std::string& to) {
    return within(path, from) ? to + path.substr(from.size()) : path;
  }
  void move_paths(const std::string& from, const std::string& to) {
    for (auto& e : journal_) {
      e.to = moved(e.to, from, to);
      if (e.from != from) e.from = moved(e.from, from, to);  // a place; it moves only with the directory it is in
    }
    std::map<std::string, std::uint64_t> synced;
    for (const auto& [path, bytes] : synced_) synced[moved(path, from, to)] = bytes;
    synced_ = std::move(synced);
  }

  Disk& real_;
  std::vector<Entry> journal_;                   // what the directories have not been synced with, oldest first
  std::map<std::string, std::uint64_t> synced_;  // bytes of each file that are safe
};

}  // namespace echelon::test
