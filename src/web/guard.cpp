#include "web/guard.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace echelon::web {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has_token(const GuardSettings& settings, const RequestHead& head) {
  const std::string scheme = "Bearer ";
  return head.authorization.starts_with(scheme) && same_token(head.authorization.substr(scheme.size()), settings.token);
}

}  // namespace

bool same_token(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() && !b.empty() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return different == 0;
}

bool is_loopback(const std::string& host) {
  const std::string name = lower(host);
  return name == "localhost" || name == "::1" || name == "[::1]" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

std::string refuse(const GuardSettings& settings, const RequestHead& head, int& status) {
  status = 403;
  if (std::ranges::find(settings.hosts, lower(head.host)) == settings.hosts.end())
    return "this server is not called by that name (Host)";
  if (!head.origin.empty() && std::ranges::none_of(settings.hosts, [&](const std::string& h) {
        return lower(head.origin) == settings.scheme + "://" + h;
      }))
    return "another page's script may not ask this server (Origin)";
  const bool reads = head.method == "GET" || head.method == "HEAD";
  if (!reads && head.method != "POST") {
    status = 405;
    return "only GET and POST are answered";
  }
  // The page's own files hold no data; they are what asks for the token.
  const bool data = head.path.starts_with("/api/") || head.path == "/metrics";
  const bool open = reads && (!settings.token_for_reading || !data);
  if (!open && !has_token(settings, head)) {
    status = 401;
    return "this needs the token that `echelon board` printed when it started";
  }
  if (!reads && !head.content_type.starts_with("application/json")) {
    status = 415;
    return "what is to be done is sent as application/json";
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> safe_headers() {
  return {{"Content-Security-Policy",
           "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

}  // namespace echelon::web
