#pragma once
// A socket at the rendezvous' address that listens no more: nobody can connect to it, and nobody else can bind it.

#include <utility>

namespace echelon::tcp {

class HeldAddress {
 public:
  HeldAddress() = default;
  explicit HeldAddress(int listener);  // shares the listener's socket
  HeldAddress(HeldAddress&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  HeldAddress& operator=(HeldAddress&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~HeldAddress();
  void stop_listening();

 private:
  int socket_ = -1;
};

}  // namespace echelon::tcp
