#pragma once
// Who may ask what. The page has no cookies and no login: reading is allowed to whoever reaches the port (the loopback
// address, unless somebody says otherwise), changing something needs the token that was printed at the start, in the
// header `Authorization: Bearer TOKEN`. A web page of somebody else cannot put that header there.
//
// - Host must be a name that this server has: a name that an attacker lets point to 127.0.0.1 is none (DNS rebinding).
// - Origin, where a browser sends one, must be this server itself, for every method.
// - Tokens are compared in constant time.
// Pure functions.

#include <string>
#include <vector>

namespace echelon::web {

struct GuardSettings {
  std::vector<std::string> hosts;  // "127.0.0.1:6006", "localhost:6006"
  std::string scheme = "http";
  std::string token;
  bool token_for_reading = false;  // where the port can be reached from other machines
};

struct RequestHead {
  std::string method, path, host, origin, authorization, content_type;
};

// Empty if the request is allowed; else why not, and `status` is what to answer.
std::string refuse(const GuardSettings& settings, const RequestHead& head, int& status);

// The headers of every answer: nothing is loaded from elsewhere, no script in the page itself, no frames, no sniffing.
std::vector<std::pair<std::string, std::string>> safe_headers();

}  // namespace echelon::web
