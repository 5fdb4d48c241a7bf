#pragma once
// Whether two processes are on the same machine, as far as sharing memory is concerned: they are if this text is equal.

#include <string>

namespace echelon {

std::string host_identity();  // the machine's boot, and the network and process namespaces (containers)

}  // namespace echelon
