#include "web/guard.h"

#include <algorithm>
#include <cctype>

#include "base/access.h"

namespace echelon::web {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has_token(const GuardSettings& settings, const RequestHead& head) {
  const std::string scheme = "Bearer ";
  return head.authorization.starts_with(scheme) &&
         same_secret(head.authorization.substr(scheme.size()), settings.token);
}

}  // namespace

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
