#include "member/store_messages.h"

#include "base/json.h"

namespace echelon {

namespace {

constexpr std::size_t longest_key = 1024, longest_text = std::size_t{1} << 19, most_keys = 16384;
constexpr double shortest_lease = 0.05, longest_lease = 86400;

std::string key_in(const Json& q) {
  const std::string key = q.at("key").get<std::string>();
  if (key.empty() || key.size() > longest_key) bad_input("a key has 1 to {} bytes", longest_key);
  return key;
}

std::string text_in(const Json& q) {
  std::string text = q.at("text").get<std::string>();
  if (text.size() > longest_text) bad_input("a text has at most {} bytes", longest_text);
  return text;
}

std::uint64_t number_in(const Json& q, const char* key) {
  if (!q.at(key).is_number_unsigned()) bad_input("'{}' is no number", key);
  return q.at(key).get<std::uint64_t>();
}

void expect_room(Store& store) {
  if (store.list("").size() >= most_keys) bad_input("the store has {} keys, and takes no more", most_keys);
}

Json answer_of(Store& store, const Json& q) {
  const std::string call = q.at("call").get<std::string>();
  if (call == "read") {
    const Store::Entry e = store.read(key_in(q));
    return {{"text", e.text}, {"revision", e.revision}};
  }
  if (call == "write_if") {
    const std::uint64_t revision = number_in(q, "revision");
    if (revision == 0) expect_room(store);
    return {{"done", store.write_if(key_in(q), revision, text_in(q))}};
  }
  if (call == "grant") {
    const double seconds = q.at("seconds").get<double>();
    if (!(seconds >= shortest_lease && seconds <= longest_lease))
      bad_input("a lease is for {} to {} seconds", shortest_lease, longest_lease);
    expect_room(store);
    return {{"lease", store.grant(seconds, key_in(q), text_in(q))}};
  }
  if (call == "renew") return {{"done", store.renew(number_in(q, "lease"))}};
  if (call == "revoke") return store.revoke(number_in(q, "lease")), Json{{"done", true}};
  if (call == "list") return {{"keys", store.list(q.at("key").get<std::string>())}};
  bad_input("'{}' is no call of a store; nodes of this job come and go: train with --nnodes MIN:MAX", call);
}

Json question(const char* call, const std::string& key) { return {{"call", call}, {"key", key}}; }

template <typename T>
T answered(const std::string& text, const char* key) try {
  const Json answer = parse_json(text, "the store's answer", {.depth = 3, .values = 100'000});
  if (answer.contains("error")) throw StoreError("the store says: " + answer.at("error").get<std::string>());
  return answer.at(key).get<T>();
} catch (const Json::exception& problem) {
  throw StoreError(fmt::format("the store's answer makes no sense: {}", problem.what()));
} catch (const BadInput& problem) {
  throw StoreError(problem.what());
}

}  // namespace

std::string answer_store_question(Store& store, std::string_view text) {
  try {
    return answer_of(store, parse_json(text, "a question to the store", {.depth = 2, .values = 64})).dump();
  } catch (const Json::exception& problem) {
    return Json{{"error", fmt::format("that is no question to a store: {}", problem.what())}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
  } catch (const Error& problem) {
    return Json{{"error", problem.what()}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

Store::Entry RemoteStore::read(const std::string& key) {
  const std::string text = ask(question("read", key).dump());
  return {answered<std::string>(text, "text"), answered<std::uint64_t>(text, "revision")};
}

bool RemoteStore::write_if(const std::string& key, std::uint64_t revision, const std::string& text) {
  Json q = question("write_if", key);
  q["revision"] = revision;
  q["text"] = text;
  return answered<bool>(ask(q.dump()), "done");
}

Store::Lease RemoteStore::grant(double seconds, const std::string& key, const std::string& text) {
  Json q = question("grant", key);
  q["seconds"] = seconds;
  q["text"] = text;
  return answered<Lease>(ask(q.dump()), "lease");
}

bool RemoteStore::renew(Lease lease) {
  return answered<bool>(ask(Json{{"call", "renew"}, {"lease", lease}}.dump()), "done");
}

void RemoteStore::revoke(Lease lease) {
  answered<bool>(ask(Json{{"call", "revoke"}, {"lease", lease}}.dump()), "done");
}

std::vector<std::string> RemoteStore::list(const std::string& prefix) {
  return answered<std::vector<std::string>>(ask(question("list", prefix).dump()), "keys");
}

}  // namespace echelon
