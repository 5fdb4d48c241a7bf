#pragma once
// Who may reach a server, and whether a secret is the right one. Pure functions.

#include <string>
#include <string_view>

namespace echelon {

// An address or name that only this machine reaches.
bool is_loopback(std::string_view host);

// In a time that depends on the length of `given` alone. An empty secret is never the same.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace echelon
