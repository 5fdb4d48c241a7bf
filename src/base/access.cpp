#include "base/access.h"

#include <algorithm>
#include <cctype>

namespace echelon {

bool is_loopback(std::string_view host) {
  std::string name(host);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name == "localhost" || name == "::1" || name == "[::1]" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned different = given.size() == secret.size() && !secret.empty() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned char>(given[i]) ^
                 static_cast<unsigned char>(secret.empty() ? 0 : secret[i % secret.size()]);
  return different == 0;
}

}  // namespace echelon
