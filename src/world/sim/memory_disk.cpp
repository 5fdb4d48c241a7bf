#include "world/sim/memory_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace echelon {

struct MemoryDisk::Node {
  bool directory = false;
  std::vector<std::byte> bytes;
  std::size_t synced = 0;                            // bytes that are safe
  std::map<std::string, NodePtr> names, safe_names;  // of a directory

  std::uint64_t size() const {
    std::uint64_t sum = bytes.size();
    for (const auto& [name, node] : names) sum += node->size();
    return sum;
  }
  void lose_power() {
    bytes.resize(std::min(bytes.size(), synced));
    names = safe_names;
    for (const auto& [name, node] : names) node->lose_power();
  }
};

class MemoryDisk::OpenFile : public File {
 public:
  OpenFile(MemoryDisk& disk, NodePtr node, std::string path)
      : disk_(disk), node_(std::move(node)), path_(std::move(path)) {}
  std::uint64_t size() override { return node_->bytes.size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (offset >= node_->bytes.size()) return 0;
    const std::size_t count = std::min<std::size_t>(into.size(), node_->bytes.size() - offset);
    std::memcpy(into.data(), node_->bytes.data() + offset, count);
    return count;
  }
  void append(std::span<const std::byte> bytes) override { disk_.append(*node_, path_, bytes); }
  void sync() override {
    if (!disk_.bugs_.sync_lies) node_->synced = node_->bytes.size();
  }

 private:
  MemoryDisk& disk_;
  NodePtr node_;
  std::string path_;
};

namespace {

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

}  // namespace

MemoryDisk::MemoryDisk(std::uint64_t capacity, const PlantedBugs& bugs)
    : capacity_(capacity), bugs_(bugs), root_(std::make_shared<Node>()) {
  root_->directory = true;
}

MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::lose_power() { root_->lose_power(); }
std::uint64_t MemoryDisk::used() const { return root_->size(); }

MemoryDisk::NodePtr MemoryDisk::find(const std::string& path) const {
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    const auto it = node->names.find(part);
    if (it == node->names.end()) return nullptr;
    node = it->second;
  }
  return node;
}

MemoryDisk::NodePtr MemoryDisk::must_find(const char* call, const std::string& path) const {
  if (NodePtr node = find(path)) return node;
  std::string name;
  const NodePtr parent = parent_of(call, path, name);  // says what is wrong on the way
  throw DiskError(call, path, ENOENT);
}

MemoryDisk::NodePtr MemoryDisk::parent_of(const char* call, const std::string& path, std::string& name) const {
  const auto parts = parts_of(path);
  if (parts.empty()) throw DiskError(call, path, EISDIR);
  name = parts.back();
  NodePtr node = root_;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto it = node->names.find(parts[i]);
    if (it == node->names.end()) throw DiskError(call, path, ENOENT);
    node = it->second;
    if (!node->directory) throw DiskError(call, path, ENOTDIR);
  }
  return node;
}

std::unique_ptr<File> MemoryDisk::open(const std::string& path) {
  const NodePtr node = must_find("open", path);
  if (node->directory) throw DiskError("open", path, EISDIR);
  return std::make_unique<OpenFile>(*this, node, path);
}

std::unique_ptr<File> MemoryDisk::open_for_writing(const char* call, const std::string& path, bool truncate) {
  std::string name;
  const NodePtr parent = parent_of(call, path, name);
  NodePtr& node = parent->names[name];
  if (!node) node = std::make_shared<Node>();
  if (node->directory) throw DiskError(call, path, EISDIR);
  if (truncate) node->bytes.clear(), node->synced = 0;
  return std::make_unique<OpenFile>(*this, node, path);
}

std::unique_ptr<File> MemoryDisk::create(const std::string& path) { return open_for_writing("create", path, true); }
std::unique_ptr<File> MemoryDisk::append_to(const std::string& path) { return open_for_writing("open", path, false); }

void MemoryDisk::append(Node& node, const std::string& path, std::span<const std::byte> bytes) {
  if (full_ || (capacity_ != ~std::uint64_t{0} && used() + bytes.size() > capacity_)) {
    ++refused_;
    throw DiskError("write", path, ENOSPC);
  }
  node.bytes.insert(node.bytes.end(), bytes.begin(), bytes.end());
}

void MemoryDisk::rename(const std::string& from, const std::string& to) {
  std::string old_name, new_name;
  const NodePtr source = parent_of("rename", from, old_name), target = parent_of("rename", to, new_name);
  const auto it = source->names.find(old_name);
  if (it == source->names.end()) throw DiskError("rename", from, ENOENT);
  const NodePtr node = it->second;
  const auto there = target->names.find(new_name);
  if (there != target->names.end() && there->second->directory != node->directory)
    throw DiskError("rename", to, node->directory ? ENOTDIR : EISDIR);
  if (there != target->names.end() && node->directory && !there->second->names.empty())
    throw DiskError("rename", to, ENOTEMPTY);
  source->names.erase(it);
  target->names[new_name] = node;
}

void MemoryDisk::make_directories(const std::string& path) {
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    NodePtr& next = node->names[part];
    if (!next) {
      next = std::make_shared<Node>();
      next->directory = true;
    }
    if (!next->directory) throw DiskError("mkdir", path, ENOTDIR);
    node = next;
  }
}

void MemoryDisk::remove_all(const std::string& path) {
  std::string name;
  try {
    parent_of("remove", path, name)->names.erase(name);
  } catch (const DiskError& error) {
    if (error.error_number() != ENOENT) throw;
  }
}

void MemoryDisk::sync_directory(const std::string& path) {
  const NodePtr node = must_find("open", path);
  if (!bugs_.sync_lies) node->safe_names = node->names;
}

bool MemoryDisk::exists(const std::string& path) { return find(path) != nullptr; }

bool MemoryDisk::is_directory(const std::string& path) {
  const NodePtr node = find(path);
  return node && node->directory;
}

std::vector<std::string> MemoryDisk::list(const std::string& path) {
  const NodePtr node = must_find("open", path);
  if (!node->directory) throw DiskError("open", path, ENOTDIR);
  std::vector<std::string> out;
  for (const auto& [name, child] : node->names) out.push_back(name);
  return out;
}

}  // namespace echelon
