#include "world/http/requests.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "world/os/tasks.h"
#include "world/os/wake_up.h"

namespace echelon::http {

namespace {

constexpr double drain_seconds = 1;      // for a refused client to read why
constexpr double linger_seconds = 2e-3;  // a worker without other work waits so long for the next request

const char* reason_of(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 411: return "Length Required";
    case 413: return "Payload Too Large";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
  }
}

}  // namespace

Requests::Requests(const Limits& limits, std::unique_ptr<ServerCertificate> certificate, Answer answer)
    : limits_(limits),
      most_bytes_((8u << 20) + 8 * limits.request.body_bytes),
      certificate_(std::move(certificate)),
      answer_(std::move(answer)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) fail("cannot wait for connections (eventfd: {})", std::strerror(errno));
  gatherer_ = spawn_thread("http", [this] { gather(); });
  for (int i = 0; i < limits_.workers; ++i)
    workers_.push_back(spawn_thread(fmt::format("http-{}", i), [this] { work(); }));
}

Requests::~Requests() {
  stop();
  close(wake_);
}

void Requests::stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  if (gatherer_) gatherer_->join();
  gatherer_.reset();
  {
    const std::lock_guard lock(mutex_);
    gathered_ = true;
  }
  changed_.notify_all();
  for (const auto& worker : workers_) worker->join();
  workers_.clear();
}

void Requests::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_, &one, sizeof one);
}

void Requests::begin_request(Client& client, double now) const {
  client.size = 0;
  client.told_to_continue = false;
  client.deadline = now + limits_.head_seconds;
}

void Requests::take(int socket) {
  Client client;
  client.connection = std::make_unique<Connection>(socket, certificate_.get());
  begin_request(client, monotonic_seconds());
  admit(std::move(client));
}

void Requests::admit(Client&& client) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;  // and it is closed
    arrived_.push_back(std::move(client));
  }
  wake();
}

// Tells the client why, and goes on reading for a moment: a connection that is closed with bytes unread is reset, and
// the client might not see the answer.
Requests::State Requests::refuse(Client& client, int status, const char* why) {
  const std::string body = fmt::format("{{\"error\":\"{}\"}}\n", why);
  client.connection->write_some(fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
      reason_of(status), body.size(), body));
  client.connection->shut_down_writing();
  client.refused = true;
  client.text = {};
  client.deadline = monotonic_seconds() + drain_seconds;
  return State::waits;
}

Requests::State Requests::drain(Client& client) const {
  std::string bytes;
  if (client.connection->read(bytes, 64 << 10) == Connection::Read::ended) return State::over;
  client.thrown_away += bytes.size();
  return client.thrown_away > limits_.request.body_bytes + (1u << 20) ? State::over : State::waits;
}

Requests::State Requests::look_at(Client& client) {
  using Read = Connection::Read;
  if (client.refused) return drain(client);
  const std::size_t most = client.size > 0 ? client.size : limits_.request.head_bytes;
  const Read read = client.text.size() < most ? client.connection->read(client.text, most) : Read::bytes;
  if (client.size == 0 && !client.text.empty()) {
    const RequestSize found = request_size(client.text, limits_.request);
    if (found.refused != 0) return refuse(client, found.refused, found.why);
    if (found.bytes > 0) {
      client.size = found.bytes;
      client.deadline =
          monotonic_seconds() + limits_.head_seconds + static_cast<double>(client.size) / limits_.least_rate;
      if (found.waits_for_body && client.text.size() < client.size && !client.told_to_continue) {
        client.told_to_continue = true;
        client.connection->write_some("HTTP/1.1 100 Continue\r\n\r\n");
      }
      if (client.text.size() < client.size && read == Read::bytes) return look_at(client);  // the rest may be there
    }
  }
  if (client.size > 0 && client.text.size() >= client.size) return State::ready;
  return read == Read::ended ? State::over : State::waits;
}

// Closes those that have waited longest, until what the others hold is within the limits.
void Requests::make_room() {
  std::size_t bytes = 0;
  for (const Client& client : waiting_) bytes += client.text.capacity();
  while (waiting_.size() > limits_.waiting || (bytes > most_bytes_ && !waiting_.empty())) {
    bytes -= waiting_.front().text.capacity();
    waiting_.pop_front();
  }
}

// Gives a whole request to the workers. False if they have too much to do: then it is refused.
bool Requests::hand_over(Client& client) {
  {
    const std::lock_guard lock(mutex_);
    const bool fits = ready_.size() < limits_.ready && (held_bytes_ == 0 || held_bytes_ + client.size <= most_bytes_);
    if (fits) {
      held_bytes_ += client.size;
      ready_.push_back(std::move(client));
      changed_.notify_one();
      return true;
    }
  }
  refuse(client, 503, "too many requests wait already");
  return false;
}

void Requests::gather() {
  std::vector<pollfd> looks;
  std::vector<Client> arrived;
  while (true) {
    looks.assign(1, {wake_, POLLIN, 0});
    double next = monotonic_seconds() + 60;
    for (const Client& client : waiting_) {
      looks.push_back({client.connection->socket(), client.connection->awaited(), 0});
      next = std::min(next, client.deadline);
    }
    const double seconds = std::max(0.0, next - monotonic_seconds());
    poll(looks.data(), looks.size(), static_cast<int>(std::ceil(seconds * 1e3)));
    if (looks[0].revents != 0) {
      std::uint64_t count;
      [[maybe_unused]] const auto n = ::read(wake_, &count, sizeof count);
    }
    const double now = monotonic_seconds();
    const auto handle = [&](std::list<Client>::iterator at) {
      const State state = look_at(*at);
      if (state == State::over || (state == State::ready && hand_over(*at))) waiting_.erase(at);
    };
    std::size_t i = 1;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      const auto here = at++;
      const bool something = looks[i++].revents != 0;
      if (here->deadline < now)
        waiting_.erase(here);
      else if (something)
        handle(here);
    }
    {
      const std::lock_guard lock(mutex_);
      if (ending_) break;
      arrived.swap(arrived_);
    }
    for (Client& client : arrived) {
      waiting_.push_back(std::move(client));
      handle(std::prev(waiting_.end()));
    }
    arrived.clear();
    make_room();
  }
  waiting_.clear();
}

void Requests::work() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || gathered_; });
    if (ready_.empty()) return;
    Client client = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    State state = State::ready;
    while (state == State::ready) {
      const bool keep = answer_(*client.connection, std::string_view(client.text).substr(0, client.size));
      lock.lock();
      held_bytes_ -= client.size;
      const bool idle = ready_.empty(), ending = ending_;
      lock.unlock();
      state = keep && !ending ? State::waits : State::over;
      if (state == State::over) break;
      client.text.erase(0, client.size);
      if (client.text.capacity() > limits_.request.head_bytes) client.text.shrink_to_fit();
      begin_request(client, monotonic_seconds());
      if (idle && (!client.text.empty() || client.connection->wait_readable(linger_seconds))) state = look_at(client);
      if (state == State::ready) {
        lock.lock();
        held_bytes_ += client.size;
        lock.unlock();
      }
    }
    if (state == State::waits) admit(std::move(client));
  }
}

}  // namespace echelon::http
