#include "world/os/host_identity.h"

#include <sys/stat.h>

#include <fstream>

#include "world/os/host.h"

namespace echelon {

std::string host_identity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::string identity = boot + "/" + host_name();
  for (const char* name : {"/proc/self/ns/net", "/proc/self/ns/pid"}) {
    struct stat facts;
    identity += ::stat(name, &facts) == 0 ? "/" + std::to_string(facts.st_ino) : "/?";
  }
  return identity;
}

}  // namespace echelon
