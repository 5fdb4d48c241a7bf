#pragma once
// A store's calls as texts, for a store that another process holds. Pure but for the store that answers.

#include <string>
#include <string_view>

#include "member/store.h"

namespace echelon {

// What the store answers to a text that somebody sent; {"error": ...} if it is no question. Throws nothing.
std::string answer_store_question(Store& store, std::string_view question);

// The calls of a store whose answers come from `ask`: a question's text in, the answer's text out. What `ask` throws
// goes on; an answer that makes no sense, or says that something went wrong, is a StoreError.
class RemoteStore : public Store {
 public:
  Entry read(const std::string& key) override;
  bool write_if(const std::string& key, std::uint64_t revision, const std::string& text) override;
  Lease grant(double seconds, const std::string& key, const std::string& text) override;
  bool renew(Lease lease) override;
  void revoke(Lease lease) override;
  std::vector<std::string> list(const std::string& prefix) override;

 protected:
  virtual std::string ask(const std::string& question) = 0;
};

}  // namespace echelon
