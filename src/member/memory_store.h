#pragma once
// A store in this process' memory, on a clock that its owner gives: what the launcher's server answers from
// (member/store_server.h), and what simulations use.

#include <functional>
#include <map>

#include "member/store.h"

namespace echelon {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::function<double()> now) : now_(std::move(now)) {}

  Entry read(const std::string& key) override;
  bool write_if(const std::string& key, std::uint64_t revision, const std::string& text) override;
  Lease grant(double seconds, const std::string& key, const std::string& text) override;
  bool renew(Lease lease) override;
  void revoke(Lease lease) override;
  std::vector<std::string> list(const std::string& prefix) override;

 private:
  struct Granted {
    double seconds, until;
    std::string key;
  };
  void expire();

  std::function<double()> now_;
  std::map<std::string, Entry> entries_;
  std::map<Lease, Granted> leases_;
  std::uint64_t last_ = 0;  // number that was given away, to a revision or a lease
};

}  // namespace echelon
