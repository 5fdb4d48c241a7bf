#include "member/memory_store.h"

namespace echelon {

void MemoryStore::expire() {
  const double now = now_();
  for (auto it = leases_.begin(); it != leases_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    entries_.erase(it->second.key);
    it = leases_.erase(it);
  }
}

Store::Entry MemoryStore::read(const std::string& key) {
  expire();
  const auto it = entries_.find(key);
  return it == entries_.end() ? Entry{} : it->second;
}

bool MemoryStore::write_if(const std::string& key, std::uint64_t revision, const std::string& text) {
  if (read(key).revision != revision) return false;
  entries_[key] = {text, ++last_};
  return true;
}

Store::Lease MemoryStore::grant(double seconds, const std::string& key, const std::string& text) {
  expire();
  entries_[key] = {text, ++last_};
  leases_[++last_] = {seconds, now_() + seconds, key};
  return last_;
}

bool MemoryStore::renew(Lease lease) {
  expire();
  const auto it = leases_.find(lease);
  if (it == leases_.end()) return false;
  it->second.until = now_() + it->second.seconds;
  return true;
}

void MemoryStore::revoke(Lease lease) {
  const auto it = leases_.find(lease);
  if (it == leases_.end()) return;
  entries_.erase(it->second.key);
  leases_.erase(it);
}

std::vector<std::string> MemoryStore::list(const std::string& prefix) {
  expire();
  std::vector<std::string> keys;
  for (auto it = entries_.lower_bound(prefix); it != entries_.end() && it->first.starts_with(prefix); ++it)
    keys.push_back(it->first);
  return keys;
}

}  // namespace echelon
