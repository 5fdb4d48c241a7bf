#include "member/etcd_store.h"

#include <httplib.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace echelon {

namespace {

constexpr time_t seconds_to_connect = 1, seconds_to_answer = 2;

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= here ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) throw StoreError("etcd's answer makes no sense: no base64");
    group = group << 6 | static_cast<std::uint32_t>(value);
    if ((bits += 6) >= 8) bytes += static_cast<char>(group >> (bits -= 8) & 0xff);
  }
  return bytes;
}

// Whole numbers are texts in the gateway's JSON, and left out when they are 0.
std::uint64_t number(const Json& of, const char* key) {
  if (!of.contains(key)) return 0;
  const Json& value = of.at(key);
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<std::uint64_t>();
}

class EtcdStore final : public Store {
 public:
  explicit EtcdStore(std::vector<std::string> endpoints) : endpoints_(std::move(endpoints)) {}

  Entry read(const std::string& key) override {
    return asked("/v3/kv/range", {{"key", base64(key)}}, [](const Json& answer) {
      if (!answer.contains("kvs") || answer.at("kvs").empty()) return Entry{};
      const Json& kv = answer.at("kvs").at(0);
      return Entry{from_base64(kv.value("value", std::string())), number(kv, "mod_revision")};
    });
  }
  bool write_if(const std::string& key, std::uint64_t revision, const std::string& text) override {
    const Json unchanged{
        {"key", base64(key)}, {"target", "MOD"}, {"result", "EQUAL"}, {"mod_revision", std::to_string(revision)}};
    const Json put{{"request_put", {{"key", base64(key)}, {"value", base64(text)}}}};
    return asked("/v3/kv/txn", {{"compare", {unchanged}}, {"success", {put}}},
                 [](const Json& answer) { return answer.value("succeeded", false); });
  }
  Lease grant(double seconds, const std::string& key, const std::string& text) override {
    const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
    const Lease lease = asked("/v3/lease/grant", {{"TTL", std::to_string(whole)}, {"ID", "0"}},
                              [](const Json& answer) { return number(answer, "ID"); });
    asked("/v3/kv/put", {{"key", base64(key)}, {"value", base64(text)}, {"lease", std::to_string(lease)}},
          [](const Json&) { return 0; });
    return lease;
  }
  bool renew(Lease lease) override {
    return asked("/v3/lease/keepalive", {{"ID", std::to_string(lease)}},
                 [](const Json& answer) { return number(answer.at("result"), "TTL") > 0; });
  }
  void revoke(Lease lease) override {
    asked("/v3/kv/lease/revoke", {{"ID", std::to_string(lease)}}, [](const Json&) { return 0; });
  }
  std::vector<std::string> list(const std::string& prefix) override {
    std::string after = prefix;  // the first key that does not begin so
    while (!after.empty() && static_cast<unsigned char>(after.back()) == 0xff) after.pop_back();
    if (!after.empty()) after.back() = static_cast<char>(after.back() + 1);
    const Json question{{"key", base64(prefix.empty() ? std::string(1, '\0') : prefix)},
                        {"range_end", base64(after.empty() ? std::string(1, '\0') : after)},
                        {"keys_only", true}};
    std::vector<std::string> keys = asked("/v3/kv/range", question, [](const Json& answer) {
      std::vector<std::string> found;
      if (answer.contains("kvs"))
        for (const Json& kv : answer.at("kvs")) found.push_back(from_base64(kv.at("key").get<std::string>()));
      return found;
    });
    std::ranges::sort(keys);
    return keys;
  }

 private:
  template <typename Read>
  auto asked(const char* path, const Json& question, Read read) -> decltype(read(question)) {
    const std::string answer = post(path, question.dump());
    try {
      return read(parse_json(answer, "etcd's answer", {.depth = 8, .values = 1'000'000}));
    } catch (const StoreError&) {
      throw;
    } catch (const std::exception& problem) {
      throw StoreError(fmt::format("etcd's answer makes no sense: {}", problem.what()));
    }
  }

  std::string post(const char* path, const std::string& body) {
    std::string why;
    for (std::size_t tried = 0; tried < endpoints_.size(); ++tried) {
      httplib::Client client("http://" + endpoints_[at_]);
      client.set_connection_timeout(seconds_to_connect);
      client.set_read_timeout(seconds_to_answer);
      client.set_write_timeout(seconds_to_answer);
      const httplib::Result result = client.Post(path, body, "application/json");
      if (result && result->status == 200) return result->body;
      if (result && result->status >= 400 && result->status < 500)  // it is as it should be, and does not want this
        throw StoreError(fmt::format("etcd at {} refuses {}: {}", endpoints_[at_], path, result->body));
      why = result ? fmt::format("etcd at {}: status {}", endpoints_[at_], result->status)
                   : fmt::format("etcd at {}: {}", endpoints_[at_], httplib::to_string(result.error()));
      at_ = (at_ + 1) % endpoints_.size();
    }
    throw StoreError(why);
  }

  const std::vector<std::string> endpoints_;
  std::size_t at_ = 0;  // the one that answered last
};

}  // namespace

std::unique_ptr<Store> make_etcd_store(const std::string& endpoints) {
  std::vector<std::string> all;
  std::size_t begin = 0;
  while (begin <= endpoints.size()) {
    const std::size_t end = std::min(endpoints.find(',', begin), endpoints.size());
    const std::string one = endpoints.substr(begin, end - begin);
    if (one.find(':') == std::string::npos || one.find('/') != std::string::npos)
      bad_input("'{}' is no etcd endpoint: say HOST:PORT, several with commas", one);
    all.push_back(one);
    begin = end + 1;
  }
  return std::make_unique<EtcdStore>(std::move(all));
}

}  // namespace echelon
