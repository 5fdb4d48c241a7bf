#pragma once
// Where the nodes of a job agree on who is in it: texts under keys, with compare-and-swap and leases. What etcd offers,
// and no more. Every call either returns what the store says or throws StoreError; after a StoreError a write may or
// may not have happened.
//
// For one thread at a time.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace echelon {

// The store cannot be reached, or does not answer in time.
class StoreError : public Failure {
  using Failure::Failure;
};

class Store {
 public:
  struct Entry {
    std::string text;
    std::uint64_t revision = 0;  // 0: there is no such key. Never the same again after a write
  };
  using Lease = std::uint64_t;

  virtual ~Store() = default;
  virtual Entry read(const std::string& key) = 0;
  // Writes if the key still has that revision (0: if there is none); false if it has not.
  virtual bool write_if(const std::string& key, std::uint64_t revision, const std::string& text) = 0;
  // A key that is gone when the lease has not been renewed for so many seconds.
  virtual Lease grant(double seconds, const std::string& key, const std::string& text) = 0;
  virtual bool renew(Lease lease) = 0;                                   // false: it has expired, and its key is gone
  virtual void revoke(Lease lease) = 0;                                  // its key is gone at once
  virtual std::vector<std::string> list(const std::string& prefix) = 0;  // keys that begin so, sorted
};

}  // namespace echelon
