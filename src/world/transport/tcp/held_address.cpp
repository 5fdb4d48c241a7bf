#include "world/transport/tcp/held_address.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace echelon::tcp {

HeldAddress::HeldAddress(int listener) : socket_(::fcntl(listener, F_DUPFD_CLOEXEC, 0)) {
  if (socket_ < 0) fail("the rendezvous' address cannot be held: {}", std::strerror(errno));
}

HeldAddress::~HeldAddress() {
  if (socket_ >= 0) ::close(socket_);
}

void HeldAddress::stop_listening() {
  if (socket_ < 0) return;
  ::shutdown(socket_, SHUT_RDWR);  // it stays bound
  const int no = 0;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &no, sizeof no);
}

}  // namespace echelon::tcp
