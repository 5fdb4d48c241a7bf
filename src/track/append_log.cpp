#include "track/append_log.h"

namespace echelon {

AppendLog::AppendLog(Disk& disk, std::string path, std::size_t most_kept)
    : disk_(disk), path_(std::move(path)), most_kept_(most_kept) {}

void AppendLog::append(std::string_view record) {
  if (!kept_.empty() && kept_.size() + record.size() > most_kept_)
    ++dropped_;
  else
    kept_ += record;
  write_kept();
}

void AppendLog::sync() {
  write_kept();
  if (file_) file_->sync();
}

void AppendLog::write_kept() {
  if (kept_.empty()) return;
  if (!file_) {
    auto file = disk_.append_to(path_);
    size_ = file->size();
    file_ = std::move(file);  // only now: without its first size we could not tell what a failed write has left
  }
  // A write that failed may have written a part: what the file has grown by is the beginning of what we kept.
  const std::uint64_t now = file_->size();
  if (now > size_) kept_.erase(0, std::min<std::uint64_t>(now - size_, kept_.size()));
  size_ = now;
  file_->append(std::as_bytes(std::span(kept_)));
  size_ += kept_.size();
  kept_.clear();
}

}  // namespace echelon
